package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
	// usual is where a gateway runs that was told nothing.
	usual string
}

func doctorCommand(p process) *cobra.Command {
	flags := doctorFlags{late: lateEvent, usual: gatewayExample}
	c := &cobra.Command{
		Use:   "doctor [URL | ALIAS]…",
		Short: "Find out why an agent cannot be reached, and what to do",
		Long: `Goes the gateway's way to an agent step by step (name, connection, TLS, card,
interface, credential, a harmless call) and says at each step what it found and
the remedy. Without an argument it looks at every agent of the configuration,
and at the gateway if one runs: where the file says, or without a file at
` + gatewayExample + `.

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
	who, err := f.subjects(p, args)
	if errors.Is(err, errNoFile) && len(args) == 0 {
		return r, f.onlyGateway(ctx, p, add, err)
	}
	if err != nil {
		return nil, err
	}
	if problems := who.broken[""]; len(problems) > 0 {
		add(refused("configuration", who.cfg.Path, problems))
	}
	found := make([]diagnosis, len(who.agents))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, a := range who.agents {
		all.Go(func() error {
			if problems := who.broken[a.Alias]; len(problems) > 0 {
				found[i] = refused(a.Alias, addressOf(a), problems)
			} else {
				found[i] = f.examineAgent(ctx, who.cfg, a)
			}
			return nil
		})
	}
	_ = all.Wait() // nobody fails: what is found is in found
	for _, d := range found {
		add(d)
	}
	if len(args) == 0 && who.cfg.Listen != "" {
		if d := f.examineGateway(ctx, p, ownURL(who.cfg)); !absent(d) {
			add(d)
		}
	}
	return r, nil
}

// onlyGateway looks at the gateway that runs where gateways run that were told
// nothing, such as a demo; there is no file that names agents. Without a
// gateway either, noFile says what to do.
func (f doctorFlags) onlyGateway(ctx context.Context, p process, add func(diagnosis), noFile error) error {
	d := f.examineGateway(ctx, p, f.usual)
	if absent(d) || len(d.Lines) == 1 && d.Lines[0].Finding == "gateway_not" {
		return noFile
	}
	add(d)
	return nil
}

// absent reports whether a gateway was looked at that does not run.
func absent(d diagnosis) bool { return len(d.Lines) == 0 || d.Lines[0].Finding == "gateway_down" }

// refused is the diagnosis of what cannot be used as it is configured.
func refused(name, address string, problems []config.Problem) diagnosis {
	c := newChart(name, address)
	for _, problem := range problems {
		c.found("config_refused", "%s", problem)
	}
	return c.d
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

// subjects are who is looked at.
type subjects struct {
	cfg    *config.Config
	agents []config.Agent
	// broken has the problems of agents that cannot be used as configured, by
	// alias, and under "" those of the rest of the file.
	broken map[string][]config.Problem
}

// subjects are the agents that the arguments name: URLs, or aliases of the
// configuration; all of it without arguments.
func (f doctorFlags) subjects(p process, args []string) (subjects, error) {
	if len(args) > 0 && strings.Contains(args[0], "://") {
		if f.file.config != "" {
			return subjects{}, usageError{errors.New("--config goes with aliases, not with URLs; leave one of them out")}
		}
		cfg, err := config.FromURLs(args)
		if err != nil {
			return subjects{}, usageError{err}
		}
		return subjects{cfg: cfg, agents: cfg.Agents}, nil
	}
	path, data, err := f.file.file(p)
	if err != nil {
		return subjects{}, err
	}
	cfg, broken, err := config.ParseEach(path, data, p.getenv, os.ReadFile)
	if err != nil {
		return subjects{}, err
	}
	who := subjects{cfg: cfg, broken: broken}
	if len(args) == 0 {
		who.agents = cfg.Agents
		return who, nil
	}
	for _, alias := range args {
		a, ok := cfg.Agent(alias)
		if !ok {
			var known []string
			for _, a := range cfg.Agents {
				known = append(known, a.Alias)
			}
			return subjects{}, usageError{fmt.Errorf("there is no agent %q in %s; known are %s", alias, cfg.Path, strings.Join(known, ", "))}
		}
		who.agents = append(who.agents, *a)
	}
	return who, nil
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
