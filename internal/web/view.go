package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"
)

// pageData is what page.html is given.
type pageData struct {
	Status
	ETag string
	// Every is in milliseconds.
	Every int64
}

// Ready is the number of agents that can be called.
func (p pageData) Ready() int {
	n := 0
	for _, a := range p.Agents {
		if a.State == "ready" {
			n++
		}
	}
	return n
}

// Detailed reports whether there is more to show of an agent than its state.
func (a Agent) Detailed() bool {
	return len(a.Skills)+len(a.Notes) > 0 || a.URL != "" || a.CardURL != "" || a.Documentation != ""
}

// functions are those of the templates. Each returns plain text: html/template
// escapes it for the place where it stands.
var functions = template.FuncMap{
	"count":    count,
	"duration": durationWords,
	"href":     href,
	"indent":   indent,
	"instant":  instant,
	"moment":   moment,
	"outcome":  outcomeWords,
	"state":    stateWords,
	"tone":     tone,
}

// count is "1 agent", "2 agents".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// href returns an absolute http(s) URL as it is and "" for anything else: the
// page then shows text in place of a link.
func href(v string) string {
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return v
}

// indent lays out JSON for reading; what is not JSON stays as it is.
func indent(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// moment is a time for people, instant the same for the script.
func moment(t time.Time) string  { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stateWords is an agent's state in words; an unknown one is shown as it is.
func stateWords(state string) string {
	switch state {
	case "auth_required":
		return "credential needed"
	case "no_interface":
		return "no usable interface"
	}
	return strings.ReplaceAll(state, "_", " ")
}

// outcomeWords is the outcome of a call in words.
func outcomeWords(outcome string) string {
	switch outcome {
	case "result":
		return "answered"
	case "input_required":
		return "asked a question"
	case "task":
		return "went on as a task"
	}
	return strings.ReplaceAll(outcome, "_", " ")
}

// tone is the colour class of a state or an outcome, beside its words.
func tone(word string) string {
	switch word {
	case "ready", "result":
		return "good"
	case "connecting", "task", "input_required":
		return "wait"
	}
	return "bad"
}

// durationWords is a duration in the unit that reads best.
func durationWords(millis int64) string {
	d := time.Duration(millis) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", millis)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
