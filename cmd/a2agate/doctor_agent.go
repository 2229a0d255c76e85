package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"a2agate/a2a"
	"a2agate/config"
)

// lateEvent is from when on the first event of a stream is late: clients and
// proxies begin to give up.
const lateEvent = 10 * time.Second

// examineAgent goes the gateway's way to an agent.
func (f doctorFlags) examineAgent(ctx context.Context, cfg *config.Config, agent config.Agent) diagnosis {
	c := newChart(agent.Alias, addressOf(agent))
	if !agent.Enabled {
		c.found("agent_disabled", "agents.%s.enabled is false", agent.Alias)
	}
	options, err := agentConfig(agent)
	if err == nil {
		options.Limits = recipeOf(agent, cfg).limits
		options.Timeouts = a2a.Timeouts{Dial: f.timeout, Header: f.timeout}
		var a *a2a.Agent
		if a, err = a2a.NewAgent(options); err == nil {
			defer a.Close()
			var pinned *pinnedCard
			if pinned, err = pinnedOf(cfg, agent); err == nil {
				f.walk(ctx, c, options, a, pinned)
				return c.d
			}
		}
	}
	c.found("config_refused", "%s", oneLine(err.Error()))
	return c.d
}

// addressOf is where an agent is configured to be, without what may be keys.
func addressOf(agent config.Agent) string {
	if agent.URL == "" {
		return hiddenQuery(agent.CardURL)
	}
	return hiddenQuery(agent.URL)
}

// pinnedOf returns the card of a pinned agent that was accepted, nil for none.
func pinnedOf(cfg *config.Config, agent config.Agent) (*pinnedCard, error) {
	if !agent.Pin {
		return nil, nil //nolint:nilnil // no accepted card is not an error
	}
	pins, err := newPins(pinPath(cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	pinned, _ := pins.accepted(agent.Alias)
	return pinned, nil
}

// walk makes the steps, until one shows that the others are of no use.
func (f doctorFlags) walk(ctx context.Context, c *chart, options a2a.AgentConfig, agent *a2a.Agent, pinned *pinnedCard) {
	candidates, err := a2a.CardCandidates(options)
	if err != nil || len(candidates) == 0 {
		c.found("config_refused", "the address of the card cannot be told")
		return
	}
	if !f.networks(ctx, c, options, candidates) || !f.card(ctx, c, options, agent, pinned) || !chosen(c, agent) {
		return
	}
	client, err := agent.Client(ctx)
	if err != nil {
		c.found("no_interface", "%s", plainError(err))
		return
	}
	if !f.call(ctx, c, options, agent, client) {
		return
	}
	f.stream(ctx, c, client)
}

// networks tries the origins at which the card may be, until one can be talked
// to.
func (f doctorFlags) networks(ctx context.Context, c *chart, options a2a.AgentConfig, candidates []string) bool {
	var origins []*url.URL
	for _, candidate := range candidates {
		at, err := url.Parse(candidate)
		if err == nil && !slices.ContainsFunc(origins, func(o *url.URL) bool { return o.Scheme == at.Scheme && o.Host == at.Host }) {
			origins = append(origins, at)
		}
	}
	for i, at := range origins {
		if f.network(ctx, c, options, at) {
			return true
		}
		if i < len(origins)-1 {
			// Not the last word.
			last := &c.d.Lines[len(c.d.Lines)-1]
			last.Result, last.Remedy, c.d.Usable = resultNote, "", true
		}
	}
	return false
}

// network looks the host up, connects to it and shakes hands.
func (f doctorFlags) network(ctx context.Context, c *chart, options a2a.AgentConfig, at *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	host, port := at.Hostname(), at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(at.Scheme)]
	}
	if net.ParseIP(host) != nil {
		c.ok(stepResolve, "%s is an address", host)
	} else {
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			code := "name_unknown"
			var dns *net.DNSError
			if errors.As(err, &dns) && !dns.IsNotFound {
				code = "name_server"
			}
			c.found(code, "%q cannot be resolved", host)
			return false
		}
		c.ok(stepResolve, "%s is %s", host, strings.Join(found, ", "))
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		c.found(connectFinding(err), "no connection to %s", net.JoinHostPort(host, port))
		return false
	}
	_ = conn.Close() // it was only to be had
	c.ok(stepConnect, "%s takes connections", net.JoinHostPort(host, port))
	if !strings.EqualFold(at.Scheme, "https") {
		c.note(stepTLS, "none, the address is http://")
		return true
	}
	return handshake(ctx, c, options, at, net.JoinHostPort(host, port))
}

func connectFinding(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return "unreachable"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "connect_timeout"
	}
	return "connect_failed"
}

// handshake shakes hands as the gateway does: with the agent's own transport,
// on a request that asks for nothing.
func handshake(ctx context.Context, c *chart, options a2a.AgentConfig, at *url.URL, address string) bool {
	state, err := shakeHands(ctx, options, at, address)
	if err != nil {
		c.found(tlsFinding(err), "the handshake with %s failed: %s", address, tlsWords(err))
		return false
	}
	leaf := state.PeerCertificates[0]
	c.ok(stepTLS, "the certificate of %s is good until %s", strings.Join(certificateNames(leaf), ", "), leaf.NotAfter.UTC().Format(time.DateOnly))
	return true
}

// card fetches the card and tells every request for it.
func (f doctorFlags) card(ctx context.Context, c *chart, options a2a.AgentConfig, agent *a2a.Agent, pinned *pinnedCard) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*f.timeout)
	defer cancel()
	card, err := agent.FetchCard(ctx)
	attempts, status := agent.Attempts(), agent.Status()
	code, detail := "", ""
	if err != nil {
		code, detail = cardFinding(err, status, attempts)
		if at := f.mcpAt(ctx, options); at != "" && (code == "card_missing" || code == "card_page") {
			code, detail = "card_mcp", at+" answers as an MCP server does"
		}
	}
	for _, t := range attempts {
		with := ""
		if t.Authorized {
			with = ", with the credential"
		}
		switch {
		case t.Problem == "":
			c.ok(stepCard, "GET %s: %d %s%s", t.URL, t.Status, t.ContentType, with)
		case t.Problem == detail: // told below
		case strings.Contains(t.Problem, t.URL):
			c.note(stepCard, "%s%s", t.Problem, with)
		default:
			c.note(stepCard, "GET %s: %s%s", t.URL, t.Problem, with)
		}
	}
	if err != nil {
		c.found(code, "%s", detail)
		return false
	}
	c.ok(stepCard, "%q, version %q, %s, streaming %t", oneLine(card.Name), oneLine(card.Version), counted(len(card.Skills), "skill"), card.Streaming)
	if pinned != nil && pinned.SHA256 != offerDigest(card) {
		c.found("card_held", "the card has changed since it was accepted (%s)", strings.Join(offerChanges(pinned.card, card), ", "))
	}
	for _, note := range status.Notes {
		if !isAddressNote(note) && !isDemand(note) {
			c.found("card_odd", "%s", note)
		}
	}
	return true
}

// cardFinding sorts why there is no card.
func cardFinding(err error, status a2a.AgentStatus, attempts []a2a.CardAttempt) (code, detail string) {
	var e *a2a.Error
	if !errors.As(err, &e) {
		return "card_broken", err.Error()
	}
	if detail = status.Reason; detail == "" {
		detail = e.Message
	}
	answered := slices.ContainsFunc(attempts, func(t a2a.CardAttempt) bool { return t.Status >= 200 && t.Status < 300 })
	switch {
	case e.Cause == a2a.CauseTimeout:
		return "card_slow", detail
	case e.Cause == a2a.CauseAuth && e.HTTPStatus == 0:
		return "credential_unavailable", detail
	case e.Cause == a2a.CauseLimit:
		return "card_too_large", detail
	case status.State == a2a.AgentAuthRequired:
		return "card_auth", detail
	case status.State == a2a.AgentBlockedOrigin:
		return "card_blocked", detail
	case status.State == a2a.AgentInvalidCard:
		return "card_invalid", detail
	case status.State == a2a.AgentNotACard && answered:
		return "card_page", detail
	case status.State == a2a.AgentNotACard:
		return "card_missing", detail
	case e.Cause == a2a.CauseHTTP:
		return "card_down", detail
	case e.Cause == a2a.CauseProtocol:
		return "card_no_http", detail
	case e.Cause == a2a.CauseTLS:
		return "tls_client", detail
	}
	return "card_broken", detail
}

// The notes of an agent that belong to a step of their own, by how they begin.
func isAddressNote(note string) bool { return strings.HasPrefix(note, "the card advertises ") }
func isDemand(note string) bool      { return strings.HasPrefix(note, "the agent demands ") }

// chosen tells which interface is used.
func chosen(c *chart, agent *a2a.Agent) bool {
	status := agent.Status()
	switch {
	case status.State == a2a.AgentBlockedOrigin:
		c.found("foreign_origin", "%s", status.Reason)
		return false
	case status.State == a2a.AgentNoInterface && strings.Contains(status.Reason, "extension"):
		c.found("extension_required", "%s", status.Reason)
		return false
	case status.State == a2a.AgentNoInterface:
		c.found("no_interface", "%s", status.Reason)
		return false
	}
	c.ok(stepInterface, "A2A %s over %s at %s", status.Version, status.Binding, status.URL)
	for _, note := range status.Notes {
		if isAddressNote(note) {
			c.found("address_corrected", "%s", note)
		}
	}
	return true
}

// call reads a task that cannot exist: TaskNotFound is the good answer.
func (f doctorFlags) call(ctx context.Context, c *chart, options a2a.AgentConfig, agent *a2a.Agent, client *a2a.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	none := 0
	_, err := client.GetTask(ctx, "a2agate-doctor-"+strings.ToLower(rand.Text()[:12]), &none)
	var e *a2a.Error
	if err != nil && !errors.As(err, &e) {
		e = &a2a.Error{Cause: a2a.CauseReset, Message: err.Error()}
	}
	began := c.started // the time of the call is told with the call
	c.started = time.Now()
	if !tellAuth(c, options, agent, e) {
		return false
	}
	c.started = began
	switch {
	case e == nil:
		c.found("task_found", "GetTask of an id that nobody has made up answers with a task")
		return true
	case e.Code == a2a.CodeTaskNotFound:
		c.ok(stepCall, "GetTask of an unknown id answers TaskNotFound")
		return true
	}
	code := callFinding(e)
	c.found(code, "GetTask of an unknown id: %s", e.Message)
	return findingOf(code).result != resultFailure
}

// tellAuth tells how the credential fared in a call that ended with e.
func tellAuth(c *chart, options a2a.AgentConfig, agent *a2a.Agent, e *a2a.Error) bool {
	has := "no credential is configured"
	if kind, ok := options.Authorizer.(interface{ Kind() string }); ok {
		has = "the credential (" + kind.Kind() + ")"
	} else if options.Authorizer != nil {
		has = "the credential"
	}
	if e != nil && e.Cause == a2a.CauseAuth {
		code := "auth_refused"
		if e.HTTPStatus == 0 && e.Code == 0 {
			code = "credential_unavailable"
		}
		said := e.Message
		if e.Challenge != "" {
			said += ", WWW-Authenticate: " + e.Challenge
		}
		c.found(code, "%s: %s", has, said)
		return false
	}
	for _, note := range agent.Status().Notes {
		if isDemand(note) {
			c.found("credential_missing", "%s", note)
			return true
		}
	}
	switch {
	case e != nil && e.HTTPStatus == 0 && e.Code == 0 && e.Cause != a2a.CauseAgent:
		c.note(stepAuth, "%s; whether that is accepted is not known, the call did not get through", has)
	case options.Authorizer == nil:
		c.ok(stepAuth, "%s, and none is demanded", has)
	default:
		c.ok(stepAuth, "%s is not refused", has)
	}
	return true
}

// callFinding sorts a failed call by what can be done about it.
func callFinding(e *a2a.Error) string {
	switch {
	case e.Code == -32601 || e.Code == a2a.CodeUnsupportedOperation:
		return "no_tasks"
	case e.Cause == a2a.CauseAgent:
		return "call_error"
	case e.HTTPStatus == http.StatusNotFound || e.HTTPStatus == http.StatusMethodNotAllowed:
		return "call_path"
	case e.Cause == a2a.CauseHTTP:
		return "call_http"
	case e.Cause == a2a.CauseTimeout:
		return "call_slow"
	case e.Cause == a2a.CauseProtocol, e.Cause == a2a.CauseLimit:
		return "call_not_a2a"
	case e.Cause == a2a.CauseReset:
		return "call_broken"
	}
	return "call_connection"
}

// stream sends the message of --send and measures the time to the first event.
func (f doctorFlags) stream(ctx context.Context, c *chart, client *a2a.Client) {
	if f.send == "" {
		c.found("stream_not_tried", "no message is sent")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, max(f.timeout, 3*f.late))
	defer cancel()
	req := a2a.SendRequest{ReturnImmediately: true, Message: a2a.Message{
		MessageID: a2a.NewMessageID(), Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: f.send}},
	}}
	if !client.Streams() {
		event, err := client.Send(ctx, req)
		if err != nil {
			c.found("send_failed", "%s", plainError(err))
			return
		}
		c.found("stream_unary", "the card says that the agent does not stream; it answers %s", eventWords(event))
		giveUp(ctx, client, event)
		return
	}
	started := time.Now()
	events, err := client.Stream(ctx, req)
	var event a2a.Event
	if err == nil {
		event, err = events.Next()
		defer events.Close()
	}
	took := time.Since(started)
	var e *a2a.Error
	switch {
	case errors.As(err, &e) && e.Cause == a2a.CauseEmptyStream, err != nil && e == nil:
		c.found("stream_empty", "the stream ended without an event")
	case err != nil:
		c.found("send_failed", "%s", plainError(err))
	case took > f.late:
		c.found("stream_slow", "the first event is %s", eventWords(event))
		giveUp(ctx, client, event)
	default:
		c.ok(stepStream, "the first event is %s", eventWords(event))
		giveUp(ctx, client, event)
	}
}

// eventWords describes an event without its contents.
func eventWords(e a2a.Event) string {
	switch {
	case e.Message != nil:
		return "a message"
	case e.Task != nil:
		return "a task in " + string(e.Task.Status.State)
	case e.Status != nil:
		return "a status, " + string(e.Status.Status.State)
	case e.Artifact != nil:
		return "a piece of an artifact"
	}
	return "empty"
}

// giveUp cancels the task that the message has begun: nobody waits for it.
func giveUp(ctx context.Context, client *a2a.Client, e a2a.Event) {
	id := ""
	switch {
	case e.Task != nil && !e.Task.Status.State.Terminal():
		id = e.Task.ID
	case e.Status != nil && !e.Status.Status.State.Terminal():
		id = e.Status.TaskID
	case e.Artifact != nil:
		id = e.Artifact.TaskID
	}
	if id != "" {
		_, _ = client.CancelTask(ctx, id) // it may have ended
	}
}

// plainError is the line of an error for people.
func plainError(err error) string {
	var e *a2a.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return oneLine(err.Error())
}

// hiddenQuery is an address without the values of its query, which may be keys.
func hiddenQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.RawQuery != "" {
		return shown.String() + "?…"
	}
	return shown.String()
}
