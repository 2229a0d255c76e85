package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestConversations plays testdata/conversations against a whole gateway and
// a scripted agent, and compares what comes back. A file is prose, then
// sections in the order in which things happen:
//
//	options        words of conversationOptions, one a line
//	N request      is sent, and its answer is waited for …
//	N answer       … which is this
//	N opens        is sent like a request; the answer is read on the side
//	N reads COUNT  so many messages have come on it, these
//	N ends         what came after them until the answer's end, progress apart
//	N leaves       the client closes the connection; empty
//	N agent        the agent does something, by words of conversation.act
//	N saw          the messages and cancellations that the agent has received
//	               since it was last asked
//
// A request is a line of words (see wire), header lines, and a line with the
// method and its params. Params may name handles by the names that they have
// in the answers: TASK1, CONTEXT1, STATE1, in the order of their appearance.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			playConversation(t, file)
		})
	}
}

// step is one section of a conversation.
type step struct {
	name, kind string
	// count is the N of "reads N".
	count int
	// index is the section's place in the archive.
	index int
	text  string
}

// golden are the kinds whose text is what is expected.
var golden = []string{"answer", "reads", "ends", "saw"}

// loadConversation is strict: a file that says nothing, a section that nobody
// reads, a request without an answer, or one twice is an error.
func loadConversation(raw []byte) (options []string, steps []step, err error) {
	a := txtar.Parse(raw)
	if len(bytes.TrimSpace(a.Comment)) == 0 {
		return nil, nil, fmt.Errorf("no prose before the first section")
	}
	seen, opened := map[string]bool{}, map[string]bool{}
	for i, f := range a.Files {
		if f.Name == "options" && i == 0 {
			options = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			continue
		}
		s, err := stepFromSection(f, i)
		if err != nil {
			return nil, nil, err
		}
		if seen[f.Name] && s.kind != "reads" {
			return nil, nil, fmt.Errorf("two sections are called %q", f.Name)
		}
		seen[f.Name] = true
		last := step{}
		if len(steps) > 0 {
			last = steps[len(steps)-1]
		}
		switch wants := last.kind == "request"; {
		case wants != (s.kind == "answer") || wants && last.name != s.name:
			return nil, nil, fmt.Errorf("section %q: a request is followed by its answer, and nothing else is", f.Name)
		case s.kind == "opens":
			opened[s.name] = true
		case slices.Contains([]string{"reads", "ends", "leaves"}, s.kind) && !opened[s.name]:
			return nil, nil, fmt.Errorf("section %q: nothing of that name is open", f.Name)
		case s.kind == "ends" || s.kind == "leaves":
			delete(opened, s.name)
		}
		steps = append(steps, s)
	}
	switch {
	case len(steps) == 0:
		return nil, nil, fmt.Errorf("no sections")
	case steps[len(steps)-1].kind == "request":
		return nil, nil, fmt.Errorf("the last request has no answer")
	case len(opened) > 0:
		return nil, nil, fmt.Errorf("not every opened request ends or is left: %v", opened)
	}
	return options, steps, nil
}

func stepFromSection(f txtar.File, index int) (step, error) {
	words := strings.Fields(f.Name)
	s := step{index: index, text: string(f.Data)}
	if n := len(words); n > 2 && words[n-2] == "reads" {
		var err error
		if s.count, err = strconv.Atoi(words[n-1]); err != nil || s.count < 1 {
			return s, fmt.Errorf("section %q: read how many?", f.Name)
		}
		words = words[:n-1]
	}
	if len(words) < 2 {
		return s, fmt.Errorf("section %q has no name and kind", f.Name)
	}
	s.name, s.kind = strings.Join(words[:len(words)-1], " "), words[len(words)-1]
	switch s.kind {
	case "request", "opens", "agent":
		if strings.TrimSpace(s.text) == "" {
			return s, fmt.Errorf("section %q is empty", f.Name)
		}
	case "leaves":
		if strings.TrimSpace(s.text) != "" {
			return s, fmt.Errorf("section %q must be empty", f.Name)
		}
	case "answer", "ends", "saw":
	case "reads":
		if s.count == 0 {
			return s, fmt.Errorf("section %q: read how many?", f.Name)
		}
	default:
		return s, fmt.Errorf("section %q is of no known kind", f.Name)
	}
	return s, nil
}

func playConversation(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options, steps, err := loadConversation(raw)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	c := newConversation(t, options)
	archive := txtar.Parse(raw)
	before := step{}
	for _, s := range steps {
		var got string
		switch s.kind {
		case "request":
		case "answer":
			got = c.ask(t, before)
		case "opens":
			c.open(t, s)
		case "reads":
			got = c.read(t, s.name, s.count)
		case "ends":
			got = c.end(t, s.name)
		case "leaves":
			c.leave(s.name)
		case "agent":
			c.act(t, s.text)
		case "saw":
			got = c.saw()
		}
		before = s
		if !slices.Contains(golden, s.kind) {
			continue
		}
		if *update {
			archive.Files[s.index].Data = []byte(got)
		} else if d := cmp.Diff(s.text, got); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", s.name, s.kind, d)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConversationLoaderIsStrict(t *testing.T) {
	const ask = "-- a request --\nmodern\nping {}\n-- a answer --\n200\n"
	if _, _, err := loadConversation([]byte("prose\n-- options --\nauth\n" + ask)); err != nil {
		t.Error(err)
	}
	for name, raw := range map[string]string{
		"empty":               "",
		"no prose":            ask,
		"no sections":         "prose\n",
		"options alone":       "prose\n-- options --\nauth\n",
		"options late":        "prose\n" + ask + "-- options --\nauth\n",
		"no answer":           "prose\n-- a request --\nmodern\nping {}\n",
		"another answer":      "prose\n-- a request --\nmodern\nping {}\n-- b answer --\n200\n",
		"answer alone":        "prose\n-- a answer --\n200\n",
		"something between":   "prose\n-- a request --\nmodern\nping {}\n-- a agent --\nstep\n-- a answer --\n200\n",
		"unknown kind":        "prose\n" + ask + "-- a reply --\n200\n",
		"no kind":             "prose\n" + ask + "-- a --\n200\n",
		"twice":               "prose\n" + ask + ask,
		"empty request":       "prose\n-- a request --\n\n-- a answer --\n200\n",
		"empty agent":         "prose\n" + ask + "-- b agent --\n",
		"read what":           "prose\n" + ask + "-- b reads 1 --\nx\n",
		"read none":           "prose\n-- a opens --\nmodern\nping {}\n-- a reads 0 --\n-- a leaves --\n",
		"read how many":       "prose\n-- a opens --\nmodern\nping {}\n-- a reads --\n-- a leaves --\n",
		"left open":           "prose\n-- a opens --\nmodern\nping {}\n",
		"leaves with a text":  "prose\n-- a opens --\nmodern\nping {}\n-- a leaves --\nx\n",
		"ends after it ended": "prose\n-- a opens --\nmodern\nping {}\n-- a ends --\n-- b ends --\n",
	} {
		if _, _, err := loadConversation([]byte(raw)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// pause is for what only time can do: a handle that expires.
func pause(t *testing.T, word string) {
	t.Helper()
	d, err := time.ParseDuration(word)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(d)
}
