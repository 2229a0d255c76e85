package a2a

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// sseEvent is an event as read.
type sseEvent struct{ Name, Data string }

// readEvents reads all events of r, as they are handed over.
func readEvents(r io.Reader, max int) (events []sseEvent, err error) {
	s := newSSEEvents(nil, r, max)
	for {
		name, data, err := s.next()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, sseEvent{name, string(data)})
	}
}

// chunked reads s in the given cuts, one a Read.
type chunked struct {
	s    string
	cuts []int // ascending
	off  int
	end  error
}

func (c *chunked) Read(p []byte) (int, error) {
	for len(c.cuts) > 0 && c.cuts[0] <= c.off {
		c.cuts = c.cuts[1:]
	}
	if c.off >= len(c.s) {
		return 0, c.end
	}
	end := len(c.s)
	if len(c.cuts) > 0 {
		end = min(end, c.cuts[0])
	}
	n := copy(p, c.s[c.off:end])
	c.off += n
	return n, nil
}

// The whole dialect of event streams, split at every offset
// (WHATWG HTML, 9.2.6).
func TestSSEDialect(t *testing.T) {
	tests := []struct {
		name, in string
		want     []sseEvent
	}{
		{"LF", "data: a\n\ndata: b\n\n", []sseEvent{{"", "a"}, {"", "b"}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []sseEvent{{"", "a"}, {"", "b"}}},
		{"CR", "data: a\r\rdata: b\r\r", []sseEvent{{"", "a"}, {"", "b"}}},
		{"mixed", "data: a\r\n\rdata: b\n\r\ndata: c\r\n\ndata: d\r\r\n", []sseEvent{{"", "a"}, {"", "b"}, {"", "c"}, {"", "d"}}},
		{"byte order mark", "\ufeffdata: a\n\n", []sseEvent{{"", "a"}}},
		{"byte order mark before a blank line", "\ufeff\ndata: a\n\n", []sseEvent{{"", "a"}}},
		{"comments", ": hi\n\n:\n\ndata: a\n: between\ndata: b\n\n:bye\n\n", []sseEvent{{"", "a\nb"}}},
		{"fields", "id: 1\nevent: message\nretry: 10\ndata: a\nfoo: x\n\n", []sseEvent{{"message", "a"}}},
		{"no space", "event:x\ndata:a\n\n", []sseEvent{{"x", "a"}}},
		{"one space only", "data:  a\n\n", []sseEvent{{"", " a"}}},
		{"many data lines", "data: a\ndata:\ndata: b\ndata\ndata: c\n\n", []sseEvent{{"", "a\n\nb\n\nc"}}},
		{"colons in the value", "data: {\"a\":\"b: c\"}\n\n", []sseEvent{{"", `{"a":"b: c"}`}}},
		{"blank lines", "\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", []sseEvent{{"", "a"}, {"", "b"}}},
		{"no blank line at the end", "data: a\n\ndata: b", []sseEvent{{"", "a"}, {"", "b"}}},
		{"no blank line but a line end", "data: a\n\ndata: b\r\n", []sseEvent{{"", "a"}, {"", "b"}}},
		{"event without data", "event: ping\n\ndata: a\n\n", []sseEvent{{"", "a"}}},
		{"empty data", "data:\n\ndata: a\n\n", []sseEvent{{"", ""}, {"", "a"}}},
		{"NUL", "data: a\x00b\n\n", []sseEvent{{"", "a\x00b"}}},
		{"UTF-8", "data: ü😀\u2028x\n\n", []sseEvent{{"", "ü😀\u2028x"}}},
		{"nothing", "", nil},
		{"only comments", ": a\n\n: b\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for cut := 0; cut <= len(tt.in); cut++ {
				got, err := readEvents(&chunked{s: tt.in, cuts: []int{cut}, end: io.EOF}, 1<<10)
				if err != nil || fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Fatalf("cut at %d: got %q, %v, want %q", cut, got, err, tt.want)
				}
			}
			for name, r := range map[string]io.Reader{
				"one byte": iotest.OneByteReader(strings.NewReader(tt.in)),
				"data+err": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				got, err := readEvents(r, 1<<10)
				if err != nil || fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("%s: got %q, %v, want %q", name, got, err, tt.want)
				}
			}
		})
	}
}

// A broken connection does not make half an event whole, and its error stays
// what it was.
func TestSSEErrors(t *testing.T) {
	for _, end := range []error{syscall.ECONNRESET, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded, errStreamTooLarge} {
		for _, in := range []string{"data: a\n\ndata: {\"half", "data: a\n\ndata: half\n", "data: a\n\n", "data: a\n\n:comm"} {
			got, err := readEvents(&chunked{s: in, end: end}, 1<<10)
			if !errors.Is(err, end) || len(got) != 1 || got[0].Data != "a" {
				t.Errorf("%v after %q: got %q, %v", end, in, got, err)
			}
		}
	}
}

// Events and lines over the limit end the stream; those at it pass.
func TestSSELimits(t *testing.T) {
	const max = 1000
	fits := "data: " + strings.Repeat("x", max-7) + "\n\n"
	if got, err := readEvents(strings.NewReader(fits), max); err != nil || len(got) != 1 || len(got[0].Data) != max-7 {
		t.Errorf("an event of the limit: %d events, %v", len(got), err)
	}
	for name, in := range map[string]io.Reader{
		"long event":     strings.NewReader("data: " + strings.Repeat("x", max) + "\n\n"),
		"many lines":     strings.NewReader(strings.Repeat("data: x\n", max/8+1) + "\n"),
		"endless line":   io.MultiReader(strings.NewReader("data: ok\n\n"), endless{}),
		"long comment":   strings.NewReader(":" + strings.Repeat("x", max+1) + "\n\n"),
		"byte by byte":   iotest.OneByteReader(strings.NewReader("data: " + strings.Repeat("x", max) + "\n\n")),
		"behind a good":  strings.NewReader("data: a\n\ndata: " + strings.Repeat("x", max) + "\n\ndata: b\n\n"),
		"no end of line": strings.NewReader(strings.Repeat("x", 2*max)),
	} {
		got, err := readEvents(in, max)
		if !errors.Is(err, errEventTooLarge) || len(got) > 1 {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
	// Comments between the events do not add up.
	many := strings.Repeat(": keep alive\n\n", 1000) + "data: a\n\n" + strings.Repeat(": keep alive\n", 1000)
	if got, err := readEvents(strings.NewReader(many), max); err != nil || len(got) != 1 {
		t.Errorf("comments: %d events, %v", len(got), err)
	}
}

// endless never ends its line.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A megabyte that comes byte by byte costs less than a second of CPU.
func TestSSEDrip(t *testing.T) {
	in := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	began := cpuTime()
	body := newWatchedBody(iotest.OneByteReader(strings.NewReader(in)), 1<<30, time.Minute, func(error) {})
	defer body.stop()
	got, err := readEvents(body, 8<<20)
	if err != nil || len(got) != 1 || len(got[0].Data) != 1<<20 {
		t.Fatalf("%d events, %v", len(got), err)
	}
	if spent := cpuTime() - began; spent > raceSlowdown*time.Second {
		t.Errorf("1 MiB byte by byte took %v of CPU", spent)
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkSSEDrip(b *testing.B) {
	in := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := readEvents(iotest.OneByteReader(strings.NewReader(in)), 8<<20); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSSELarge(b *testing.B) {
	in := []byte("data: " + strings.Repeat("x", 8<<20-100) + "\n\n")
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := readEvents(bytes.NewReader(in), 8<<20); err != nil {
			b.Fatal(err)
		}
	}
}

// sseCorpus loads the streams under testdata/streams; it fails when it finds
// none.
func sseCorpus(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/streams/*.sse")
	if err != nil || len(files) < 5 {
		t.Fatalf("testdata/streams: %d files, %v", len(files), err)
	}
	var streams [][]byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, b)
	}
	return streams
}

// However a stream is cut into reads, the events and the error are the same.
func FuzzSSEGuard(f *testing.F) {
	for _, s := range sseCorpus(f) {
		f.Add(s, uint16(7), uint16(13))
	}
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16) {
		const max = 200
		want, wantErr := readEvents(bytes.NewReader(in), max)
		x, y := int(a)%(len(in)+1), int(b)%(len(in)+1)
		readers := map[string]io.Reader{
			"two cuts": &chunked{s: string(in), cuts: []int{min(x, y), larger(x, y)}, end: io.EOF},
			"one byte": iotest.OneByteReader(bytes.NewReader(in)),
			"data+err": iotest.DataErrReader(bytes.NewReader(in)),
		}
		for name, r := range readers {
			got, err := readEvents(r, max)
			if errors.Is(err, errEventTooLarge) != errors.Is(wantErr, errEventTooLarge) {
				t.Fatalf("%s: %v, in one piece %v", name, err, wantErr)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Fatalf("%s: %q, in one piece %q", name, got, want)
			}
		}
		for _, ev := range want {
			if len(ev.Data) > max {
				t.Fatalf("an event of %d bytes", len(ev.Data))
			}
		}
	})
}

// larger is max where a constant has its name.
func larger(a, b int) int { return a + b - min(a, b) }
