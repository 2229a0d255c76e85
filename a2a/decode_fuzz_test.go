package a2a

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"
)

// corpus loads the answers under testdata/answers; it fails when it finds
// none.
func corpus(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("testdata/answers: %d files, %v", len(files), err)
	}
	var bodies []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(b))
	}
	return bodies
}

// Whatever an agent sends, the decoder does not panic, and what it accepts is
// one event with valid parts.
func FuzzDecode(f *testing.F) {
	for _, body := range corpus(f) {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, proto bool) {
		d := decoder{id: "7", proto: proto}
		if _, err := d.page(body); err == nil {
			_ = err
		}
		_, _ = d.raw(body)
		ev, err := d.event(body)
		if err != nil {
			return
		}
		checkEvent(t, ev)
		d.scratch = new(replyScratch)
		again, err := d.event(body)
		if err != nil || !reflect.DeepEqual(ev, again) {
			t.Fatalf("scratch changes the event: %+v, %+v, %v", ev, again, err)
		}
		agg := NewAggregate(0)
		if err := agg.Add(ev); err != nil {
			t.Fatal(err)
		}
		if task := agg.Task(); task != nil && task.Status.State == "" {
			t.Fatal("a task without a state")
		}
	})
}

func checkEvent(t *testing.T, ev Event) {
	t.Helper()
	n := 0
	if ev.Task != nil {
		n++
		checkStatus(t, ev.Task.Status)
		for _, a := range ev.Task.Artifacts {
			checkParts(t, a.Parts)
			checkMetadata(t, a.Metadata)
		}
		for _, m := range ev.Task.History {
			checkParts(t, m.Parts)
		}
		checkMetadata(t, ev.Task.Metadata)
	}
	if ev.Message != nil {
		n++
		checkParts(t, ev.Message.Parts)
		checkMetadata(t, ev.Message.Metadata)
	}
	if ev.Status != nil {
		n++
		checkStatus(t, ev.Status.Status)
	}
	if ev.Artifact != nil {
		n++
		checkParts(t, ev.Artifact.Artifact.Parts)
	}
	if n != 1 {
		t.Fatalf("%d things in one event: %+v", n, ev)
	}
}

func checkStatus(t *testing.T, s Status) {
	if s.Message != nil {
		checkParts(t, s.Message.Parts)
	}
}

func checkMetadata(t *testing.T, raw json.RawMessage) {
	if raw != nil && (!json.Valid(raw) || raw[0] != '{' || !utf8.Valid(raw)) {
		t.Fatalf("metadata %q", raw)
	}
}

func checkParts(t *testing.T, parts []Part) {
	t.Helper()
	for _, p := range parts {
		checkMetadata(t, p.Metadata)
		switch p.Kind {
		case PartText:
			if !utf8.ValidString(p.Text) {
				t.Fatalf("text %q", p.Text)
			}
		case PartData:
			if !json.Valid(p.Data) || !utf8.Valid(p.Data) {
				t.Fatalf("data %q", p.Data)
			}
		case PartURL:
			if p.URL == "" {
				t.Fatal("empty url")
			}
		case PartRaw:
			if _, err := base64.StdEncoding.DecodeString(p.Base64); err != nil {
				t.Fatalf("base64 %q: %v", p.Base64, err)
			}
		case PartUnknown:
			if p.Fault == "" || !json.Valid(p.Unknown) {
				t.Fatalf("unknown part %q without a reason: %q", p.Unknown, p.Fault)
			}
		default:
			t.Fatalf("kind %d", p.Kind)
		}
	}
}
