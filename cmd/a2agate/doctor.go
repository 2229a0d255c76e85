package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"a2agate/config"
)

// atOnce is how many agents doctor looks at side by side.
const atOnce = 8

// doctorFlags are what doctor can be told.
type doctorFlags struct {
	file    fileFlags
	timeout time.Duration
	send    string
	json    bool
	gateway string
	host    string
	origin  string
	// late is from when on the first event of a stream is late.
	late time.Duration
}

func doctorCommand(p process) *cobra.Command {
	flags := doctorFlags{late: lateEvent}
	c := &cobra.Command{
		Use:   "doctor [URL | ALIAS]…",
		Short: "Find out why an agent cannot be reached, and what to do",
		Long: `Goes the gateway's way to an agent step by step (name, connection, TLS, card,
interface, credential, a harmless call) and says at each step what it found and
the remedy. Without an argument it looks at every agent of the configuration,
and at the gateway if one runs.

No message is sent: the call reads a task that cannot exist. With --send one
message is sent, and the time to the first event of its stream is measured.

--gateway looks at a running gateway instead: whether it answers to its name
(Host) and keeps foreign web pages (Origin) out.

The exit code is 0 when everything that was looked at is usable, 1 when not.`,
		Example: `  a2agate doctor
  a2agate doctor https://agents.example.com/billing
  a2agate doctor billing --send "hello" --json
  a2agate doctor --gateway http://gateway.internal:8931/mcp --origin https://app.example.com`,
		RunE: func(c *cobra.Command, args []string) error {
			found, err := flags.examine(c.Context(), p, args)
			if err != nil {
				return err
			}
			return found.write(p.out, flags.json)
		},
	}
	f := c.Flags()
	f.StringVarP(&flags.file.config, "config", "c", "", "configuration file, for aliases")
	f.DurationVar(&flags.timeout, "timeout", 10*time.Second, "how long each step may take")
	f.StringVar(&flags.send, "send", "", "send this text to the agent and measure its stream")
	f.BoolVar(&flags.json, "json", false, "print the report as JSON")
	f.StringVar(&flags.gateway, "gateway", "", "look at the gateway at this URL")
	f.StringVar(&flags.host, "host", "", "the Host to try at the gateway (default: that of its URL)")
	f.StringVar(&flags.origin, "origin", "", "the Origin of a web page that shall be let in")
	return c
}

// line is one step and what it came to.
type line struct {
	Step   string `json:"step"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	// Finding is the code of what is wrong, "" when nothing is.
	Finding string `json:"finding,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	// Millis is how long the step took, in milliseconds.
	Millis int64 `json:"ms"`
}

// diagnosis is what was found about one agent, or about the gateway.
type diagnosis struct {
	// Name is the alias, or "gateway".
	Name   string `json:"name"`
	URL    string `json:"url"`
	Usable bool   `json:"usable"`
	Lines  []line `json:"steps"`
}

// report is everything that was found.
type report struct {
	Usable    bool        `json:"usable"`
	Diagnoses []diagnosis `json:"examined"`
}

// chart is a diagnosis that is being made.
type chart struct {
	d       diagnosis
	started time.Time
}

func newChart(name, url string) *chart {
	return &chart{d: diagnosis{Name: name, URL: url, Usable: true}, started: time.Now()}
}

// add notes a step that ends now.
func (c *chart) add(l line) {
	l.Millis = time.Since(c.started).Milliseconds()
	c.started = time.Now()
	c.d.Lines = append(c.d.Lines, l)
}

// ok notes a step that went well.
func (c *chart) ok(step, format string, args ...any) {
	c.add(line{Step: step, Result: resultOK, Detail: fmt.Sprintf(format, args...)})
}

// note notes something that is neither good nor bad.
func (c *chart) note(step, format string, args ...any) {
	c.add(line{Step: step, Result: resultNote, Detail: fmt.Sprintf(format, args...)})
}

// found notes a finding. The alias goes into the remedy.
func (c *chart) found(code, format string, args ...any) {
	f := findingOf(code)
	if f.result == resultFailure {
		c.d.Usable = false
	}
	c.add(line{
		Step: f.step, Result: f.result, Detail: fmt.Sprintf(format, args...), Finding: code,
		Remedy: strings.ReplaceAll(f.remedy, "<alias>", c.d.Name),
	})
}

// examine looks at what the arguments name.
func (f doctorFlags) examine(ctx context.Context, p process, args []string) (*report, error) {
	r := &report{Usable: true}
	add := func(d diagnosis) {
		r.Usable = r.Usable && d.Usable
		r.Diagnoses = append(r.Diagnoses, d)
	}
	if f.gateway != "" {
		if len(args) > 0 {
			return nil, usageError{errors.New("--gateway looks at the gateway, not at agents; leave one of them out")}
		}
		if err := checkEndpoint("--gateway", f.gateway); err != nil {
			return nil, err
		}
		add(f.examineGateway(ctx, p, f.gateway))
		return r, nil
	}
	if f.host != "" || f.origin != "" {
		return nil, usageError{errors.New("--host and --origin go with --gateway URL")}
	}
	cfg, agents, err := f.subjects(p, args)
	if err != nil {
		return nil, err
	}
	found := make([]diagnosis, len(agents))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, a := range agents {
		all.Go(func() error {
			found[i] = f.examineAgent(ctx, cfg, a)
			return nil
		})
	}
	_ = all.Wait() // nobody fails: what is found is in found
	for _, d := range found {
		add(d)
	}
	if len(args) == 0 {
		if d := f.examineGateway(ctx, p, ownURL(cfg)); len(d.Lines) > 0 && d.Lines[0].Finding != "gateway_down" {
			add(d)
		}
	}
	return r, nil
}

// ownURL is where a gateway with this configuration listens.
func ownURL(cfg *config.Config) string {
	return gatewayURL(listenAddr(cfg.Listen), "", cfg.TLS)
}

// listenAddr is a host:port as a net.Addr.
type listenAddr string

// Network returns "tcp".
func (listenAddr) Network() string  { return "tcp" }
func (a listenAddr) String() string { return string(a) }

// subjects are the agents that the arguments name: URLs, or aliases of the
// configuration; all of it without arguments.
func (f doctorFlags) subjects(p process, args []string) (*config.Config, []config.Agent, error) {
	f.file.insecure = true // nothing listens
	if len(args) > 0 && strings.Contains(args[0], "://") {
		if f.file.config != "" {
			return nil, nil, usageError{errors.New("--config goes with aliases, not with URLs; leave one of them out")}
		}
		cfg, err := config.FromURLs(args)
		if err != nil {
			return nil, nil, usageError{err}
		}
		return cfg, cfg.Agents, nil
	}
	cfg, err := f.file.load(p, nil)
	if err != nil {
		return nil, nil, err
	}
	if len(args) == 0 {
		return cfg, cfg.Agents, nil
	}
	var agents []config.Agent
	for _, alias := range args {
		a, ok := cfg.Agent(alias)
		if !ok {
			var known []string
			for _, a := range cfg.Agents {
				known = append(known, a.Alias)
			}
			return nil, nil, usageError{fmt.Errorf("there is no agent %q in %s; known are %s", alias, cfg.Path, strings.Join(known, ", "))}
		}
		agents = append(agents, *a)
	}
	return cfg, agents, nil
}

// write prints the report; the error carries the exit code.
func (r *report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			return err
		}
	} else {
		for i, d := range r.Diagnoses {
			if i > 0 {
				fmt.Fprintln(w)
			}
			d.write(w)
		}
	}
	if !r.Usable {
		return exitError(1)
	}
	return nil
}

func (d diagnosis) write(w io.Writer) {
	fmt.Fprintf(w, "%s  %s\n", d.Name, d.URL)
	for _, l := range d.Lines {
		took := ""
		if l.Millis > 0 {
			took = fmt.Sprintf(" (%d ms)", l.Millis)
		}
		fmt.Fprintf(w, "  %-7s  %-9s  %s%s\n", l.Result, l.Step, l.Detail, took)
		if l.Remedy != "" {
			fmt.Fprintf(w, "  %-7s  %-9s  %s: %s\n", "", "", l.Finding, l.Remedy)
		}
	}
	verdict := "usable"
	if !d.Usable {
		verdict = "not usable"
	}
	fmt.Fprintf(w, "%s is %s\n", d.Name, verdict)
}
