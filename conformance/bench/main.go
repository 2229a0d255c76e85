// Command bench measures what the gateway costs: each case is run against the
// gateway and against a bare httputil.ReverseProxy in front of the same
// fixture agent, in turns within one run, and is printed as a ratio. It also
// prints the gateway's allocations a call, its idle memory and how soon it
// listens.
//
// With -crowd it measures instead what 2,000 waiting calls and 10,000 idle
// tasks over 50 agents cost in memory and processor time.
//
//	bench [-crowd] [-binary bin/a2agate] [-seconds 2] [-rounds 5] [-connections 16] [-profile DIR]
//
// Everything runs on loopback and ends by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings are the command line.
type settings struct {
	binary      string
	round       time.Duration
	rounds      int
	connections int
	profileDir  string
	crowd       bool
	only        string
}

func main() {
	var s settings
	seconds := flag.Float64("seconds", 2, "length of one round of one side")
	proxy := flag.String("proxy", "", "internal: serve as the reverse proxy in front of this URL")
	flag.StringVar(&s.binary, "binary", "bin/a2agate", "the built gateway")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds a case; the median ratio is printed")
	flag.IntVar(&s.connections, "connections", 16, "concurrent connections")
	flag.StringVar(&s.profileDir, "profile", "", "write the gateway's CPU and allocation profiles here")
	flag.BoolVar(&s.crowd, "crowd", false, "measure 2,000 waiting calls and 10,000 idle tasks instead")
	flag.StringVar(&s.only, "only", "", "run, and profile, the cases whose name holds this text")
	flag.Parse()
	s.round = time.Duration(*seconds * float64(time.Second))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *proxy != "" {
		err = serveProxy(ctx, *proxy, os.Stdout)
	} else if s.crowd {
		err = crowd(ctx, s, os.Stdout)
	} else {
		err = run(ctx, s, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, out io.Writer) error {
	w, err := startWorld(ctx, s)
	if err != nil {
		return err
	}
	defer w.end()

	fmt.Fprintf(out, "start to listening, agent silent: %d ms (aim: at most 100)\n", w.startup.Milliseconds())
	rss, err := residentMiB(w.gateway.pid())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "idle memory: %.1f MiB resident (aim: at most 25), %.1f of it its own, the rest pages of the program file\n\n", rss.all, rss.own)
	fmt.Fprintf(out, "%-34s %10s %10s %7s %8s %8s %7s %9s %9s\n", "case", "gateway/s", "proxy/s", "ratio", "p99 gw", "p99 px", "p99 x", "allocs", "bytes")
	cases := slices.DeleteFunc(w.cases(), func(c comparison) bool { return !strings.Contains(c.name, s.only) })
	if len(cases) == 0 {
		return fmt.Errorf("no case's name holds %q", s.only)
	}
	for _, c := range cases {
		r, err := w.measure(ctx, s, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(out, "%-34s %10.0f %10.0f %7.2f %8s %8s %7.2f %9.0f %9.0f\n", c.name, r.gateway, r.proxy, r.ratio,
			r.gatewayP99.Round(10*time.Microsecond), r.proxyP99.Round(10*time.Microsecond), r.p99Ratio, r.allocs, r.bytes)
	}
	fmt.Fprintf(out, "\nratio: gateway's throughput over the proxy's, the median of %d rounds of %s, %d connections\n", s.rounds, s.round, s.connections)
	return w.profiles(ctx, s, cases[0])
}
