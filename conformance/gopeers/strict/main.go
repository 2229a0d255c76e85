// Command strict reads the requests that the gateway sent to agents, as
// record.mjs wrote them down, and holds each to the letter of A2A as a2a-go
// has it: ProtoJSON without unknown fields for 1.0 and for 0.3 over HTTP+JSON,
// and for 0.3 over JSON-RPC its types, from which nothing may be lost.
//
//	strict FILE ALIAS…
//
// Every alias must have sent messages, and each version and binding each
// operation that the gateway has.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: strict FILE ALIAS…")
		os.Exit(2)
	}
	n, seen, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	line := fmt.Sprintf("%d requests:", n)
	for _, op := range []string{opSend, opStream, opGet, opCancel, opSubscribe} {
		total := 0
		for _, wire := range wires {
			total += seen[wire][op]
		}
		line += fmt.Sprintf(" %s %d", op, total)
	}
	fmt.Println(line)
}

// request is one line of the file.
type request struct {
	Alias, Method, Path, ContentType, Accept, Version, Extensions, Body string
}

// maxLine bounds one recorded request, in bytes.
const maxLine = 16 << 20

func run(path string, aliases []string) (int, seen, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	n, counts := 0, seen{}
	var problems []error
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", path, err)
		}
		if strings.Contains(r.Path, "/.well-known/") {
			continue
		}
		n++
		op, err := r.check()
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s %s (A2A-Version %q): %w\n%.2000s", r.Alias, r.Method, r.Path, r.Version, err, r.Body))
		}
		counts.add(r.Alias, r.wire(), op)
	}
	problems = append(problems, lines.Err(), counts.complete(aliases))
	return n, counts, errors.Join(problems...)
}

// wire names version and binding of a request.
func (r request) wire() string {
	version, binding := "0.3", "rest"
	if r.Version != "" {
		version = r.Version
	}
	if strings.Contains(r.Body, `"jsonrpc"`) {
		binding = "rpc"
	}
	return version + "-" + binding
}

// wires are all versions and bindings.
var wires = []string{"1.0-rpc", "1.0-rest", "0.3-rpc", "0.3-rest"}

// seen counts operations by wire, and by alias.
type seen map[string]map[string]int

func (s seen) add(alias, wire, op string) {
	for _, key := range []string{alias, wire} {
		if s[key] == nil {
			s[key] = map[string]int{}
		}
		s[key][op]++
	}
}

// complete says what has not been seen, so that an empty file is no success.
func (s seen) complete(aliases []string) error {
	var missing []error
	for _, alias := range aliases {
		if s[alias][opSend]+s[alias][opStream] == 0 {
			missing = append(missing, fmt.Errorf("%s was sent no message", alias))
		}
	}
	for _, wire := range wires {
		for _, op := range []string{opSend, opStream, opGet, opCancel} {
			if s[wire][op] == 0 && !(op == opSend && s[wire][opStream] > 0) {
				missing = append(missing, fmt.Errorf("no %s on %s", op, wire))
			}
		}
	}
	for key := range s {
		if !slices.Contains(aliases, key) && !slices.Contains(wires, key) {
			missing = append(missing, fmt.Errorf("requests on %s, which is nothing known", key))
		}
	}
	return errors.Join(missing...)
}
