package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"a2agate/a2a"
	"a2agate/translate"
)

// discover is a2a_discover: one agent's card, or a list of agents.
func (inv *invocation) discover(ctx context.Context) translate.Outcome {
	if inv.call.RequestState != nil {
		return badState("this tool asks no questions")
	}
	if inv.args.text("agent") != "" {
		if problem := inv.chooseAgent(); problem != "" {
			return inv.fault(problem)
		}
		return inv.card(ctx)
	}
	return result(inv.list())
}

// card is one agent's card: byte for byte in structuredContent, a summary and
// the JSON in content, where it came from in _meta.
func (inv *invocation) card(ctx context.Context) translate.Outcome {
	bounded, cancel := context.WithTimeout(ctx, cardTimeout)
	defer cancel()
	card, err := inv.agent.Agent.FetchCard(bounded)
	if gone(ctx) {
		return cancelled()
	}
	status := inv.agent.Agent.Status()
	if err != nil {
		return inv.failure(cardError(err, status))
	}
	info := infoFromCard(card, inv.agent.AgentEntry)
	limits := inv.st.opts.Limits
	r := translate.Result{Meta: []translate.MetaEntry{{Key: "a2agate/agent", Value: agentMeta(status)}}}
	if len(card.Raw) > limits.CardBytes {
		summary := cardSummary(inv.agent.Alias, card, info, status) + fmt.Sprintf("\nThe card has %s, more than the limit of %s, and is not shown whole. It is at %s.",
			sizeWords(len(card.Raw)), sizeWords(limits.CardBytes), status.CardURL)
		r.Content = textBlocks(translate.CutRunes(summary, limits.ResultChars))
		if inv.structured() {
			r.Structured = smallCard(info, status.CardURL)
		}
		return result(r)
	}
	r.Content = textBlocks(translate.CutRunes(cardSummary(inv.agent.Alias, card, info, status), limits.ResultChars))
	if len(card.Raw) <= limits.ResultChars {
		r.Content = append(r.Content, textBlock(string(card.Raw)))
	}
	if inv.structured() {
		r.Structured = card.Raw
	}
	return result(r)
}

func (inv *invocation) structured() bool {
	return inv.st.opts.Structured != translate.StructuredNever
}

// smallCard stands for a card that is too large: what a model needs of it and
// where the rest is.
func smallCard(info agentInfo, url string) json.RawMessage {
	var b strings.Builder
	fmt.Fprintf(&b, `{"name":%s,"description":%s,"version":%s,"cardUrl":%s,"skills":`,
		jsonString(info.name), jsonString(info.description), jsonString(info.version), jsonString(url))
	b.Write(skillsJSON(info, 1))
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// cardSummary is the card in words.
func cardSummary(alias string, card *a2a.Card, info agentInfo, status a2a.AgentStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Agent %q", info.name)
	if info.version != "" {
		b.WriteString(" (version " + info.version + ")")
	}
	b.WriteString(", alias " + alias + ", state " + string(status.State) + ".")
	if status.Reason != "" {
		b.WriteString(" " + status.Reason + ".")
	}
	if info.description != "" {
		b.WriteString("\n" + info.description)
	}
	if status.URL != "" {
		fmt.Fprintf(&b, "\nA2A %s over %s at %s.", status.Version, status.Binding, status.URL)
	}
	if status.CardURL != "" {
		b.WriteString("\nCard: " + status.CardURL)
	}
	fmt.Fprintf(&b, "\nStreaming: %s. Push notifications: %s.", yesNo(card.Streaming), yesNo(card.PushNotifications))
	if len(card.InputModes)+len(card.OutputModes) > 0 {
		fmt.Fprintf(&b, "\nTakes %s; gives %s.", modes(card.InputModes), modes(card.OutputModes))
	}
	fmt.Fprintf(&b, "\n%s%s", plural(len(info.skills), "skill"), colonIf(len(info.skills) > 0))
	for i := range info.skills {
		sk := &info.skills[i]
		fmt.Fprintf(&b, "\n- %s (%s)", sk.id, sk.name)
		if sk.description != "" {
			b.WriteString(": " + strings.Join(strings.Fields(sk.description), " "))
		}
		if len(sk.tags) > 0 {
			b.WriteString(" Tags: " + strings.Join(sk.tags, ", ") + ".")
		}
		if len(sk.examples) > 0 {
			b.WriteString(" Examples: " + strings.Join(sk.examples, " | "))
		}
	}
	return b.String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func colonIf(b bool) string {
	if b {
		return ":"
	}
	return "."
}

func modes(list []string) string {
	if len(list) == 0 {
		return "anything"
	}
	out := make([]string, 0, len(list))
	for _, m := range list {
		out = append(out, clean(m, 60))
	}
	return strings.Join(out[:min(len(out), 10)], ", ")
}

// agentMeta says where a card came from and how the agent is talked to.
func agentMeta(status a2a.AgentStatus) json.RawMessage {
	m := struct {
		CardURL string      `json:"cardUrl,omitempty"`
		Version a2a.Version `json:"a2aVersion,omitempty"`
		Binding a2a.Binding `json:"binding,omitempty"`
		State   string      `json:"state"`
		Reason  string      `json:"reason,omitempty"`
		Since   string      `json:"since,omitempty"`
		Notes   []string    `json:"notes,omitempty"`
	}{
		CardURL: status.CardURL, Version: status.Version, Binding: status.Binding,
		State: string(status.State), Reason: status.Reason, Since: timeText(status.Since), Notes: status.Notes,
	}
	return json.RawMessage(jsonValue(m))
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// list is the agents that the call may see, filtered and ranked.
func (inv *invocation) list() translate.Result {
	var tags []string
	if raw := inv.args.fields["skillTags"]; raw != nil {
		_ = json.Unmarshal(raw, &tags) // the schema has checked it
	}
	query := inv.args.text("query")
	visible := inv.st.visible(&inv.call)
	found := rank(withTags(visible, tags), query)
	shown := found
	if query != "" {
		shown = found[:min(len(found), maxHits)]
	}
	raw, note := fitList(shown, len(found), inv.st.opts.Limits.ResultChars)
	head := listHead(len(shown), len(found), len(visible), query, tags)
	if note != "" {
		head += " " + note
	}
	r := translate.Result{Content: textBlocks(head, string(raw))}
	if inv.structured() {
		r.Structured = raw
	}
	return r
}

// listHead says in one line what the list is.
func listHead(shown, found, all int, query string, tags []string) string {
	switch {
	case all == 0:
		return "No agent is configured."
	case query == "" && len(tags) == 0:
		return fmt.Sprintf("%s. To read one's card, call a2a_discover with its alias as agent.", plural(all, "agent"))
	case found == 0:
		return fmt.Sprintf("None of the %s matches. Try other words, or call a2a_discover without arguments for all.", plural(all, "agent"))
	case shown < found:
		return fmt.Sprintf("The best %d of %d matches, out of %s.", shown, found, plural(all, "agent"))
	}
	return fmt.Sprintf("%d of %s match, best first.", found, plural(all, "agent"))
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// fitList writes the list with as much of each skill as the limit allows; the
// note says what was left out.
func fitList(agents []*agent, total, limit int) (raw json.RawMessage, note string) {
	for detail := range 3 {
		raw = listJSON(agents, total, detail)
		if len(raw) <= limit {
			switch detail {
			case 1:
				note = "Descriptions are shortened: read a card for the whole."
			case 2:
				note = "Only names are shown: read a card, or narrow the list with query."
			}
			return raw, note
		}
	}
	n := len(agents)
	for n > 1 && len(raw) > limit {
		n = max(1, min(n-1, n*limit/len(raw)))
		raw = listJSON(agents[:n], total, 2)
	}
	return raw, fmt.Sprintf("The list is cut after %s: narrow it with query.", plural(n, "agent"))
}

// listJSON writes agents; detail 0 is everything, 1 shortens texts, 2 keeps
// names only.
func listJSON(agents []*agent, total, detail int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"agents":[`)
	for i, a := range agents {
		if i > 0 {
			b.WriteByte(',')
		}
		status := a.Agent.Status()
		b.WriteString(`{"alias":` + jsonString(a.Alias) + `,"name":` + jsonString(a.title()))
		member := func(name, value string) {
			if value != "" {
				b.WriteString(`,"` + name + `":` + jsonString(value))
			}
		}
		member("description", shorten(a.info.description, detail, 400, 100))
		member("state", string(status.State))
		member("reason", shorten(clean(status.Reason, 400), detail, 400, 100))
		member("since", timeText(status.Since))
		member("version", a.info.version)
		b.WriteString(`,"skills":`)
		b.Write(skillsJSON(a.info, detail))
		b.WriteByte('}')
	}
	fmt.Fprintf(&b, `],"total":%d}`, total)
	return json.RawMessage(b.String())
}

// shorten cuts a text by detail.
func shorten(s string, detail, long, short int) string {
	switch detail {
	case 0:
		return translate.CutRunes(s, long)
	case 1:
		return translate.CutRunes(s, short)
	}
	return ""
}

// skillsJSON writes an agent's skills.
func skillsJSON(info agentInfo, detail int) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := range info.skills {
		sk := &info.skills[i]
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"id":` + jsonString(sk.id) + `,"name":` + jsonString(sk.name))
		if d := shorten(sk.description, detail, 300, 60); d != "" {
			b.WriteString(`,"description":` + jsonString(d))
		}
		if len(sk.tags) > 0 && detail < 2 {
			b.WriteString(`,"tags":` + jsonValue(sk.tags))
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return []byte(b.String())
}

// cardError adds the card's address to an error that does not name it.
func cardError(err error, status a2a.AgentStatus) error {
	e := *agentError(err)
	if status.CardURL != "" && !strings.Contains(e.Message, status.CardURL) {
		e.Message += " (card at " + status.CardURL + ")"
	}
	return &e
}
