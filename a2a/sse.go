package a2a

import (
	"bytes"
	"errors"
	"io"

	"github.com/r3labs/sse/v2"
)

// errEventTooLarge is an event over Limits.EventBytes.
var errEventTooLarge = errors.New("event over the limit")

// streamChunk is how much of a stream is read from the network at once, once a
// read has filled firstChunk: most streams are waited for, not read.
const (
	firstChunk  = 512
	streamChunk = 4 << 10
)

// guard stands between a response body and sse.EventStreamReader, which frames
// the events, and spares it what it cannot bear. It reads the whole dialect of
// the WHATWG specification (9.2.6: LF, CR and CRLF in any mix, a byte order
// mark, comments) and passes on whole events only, one a Read, with LF line
// ends and one blank line behind each. So the reader, which scans all it has
// anew at every read, scans each event about twice; events and partial events
// are bounded; a half event before an error is not taken for a whole one; and
// the error itself stays readable in err.
type guard struct {
	src io.Reader
	max int // bytes of one event, line ends included

	chunk   []byte // read buffer
	pending []byte // what of chunk has not been looked at
	line    []byte // the line being read, across chunks
	event   []byte // complete lines of the event being read
	ready   []byte // what of an event Read has still to hand over
	skipLF  bool   // the last byte was a CR: a LF would belong to it
	filled  bool   // the last read filled the first chunk
	begun   bool   // a line has been read, so no byte order mark can come
	err     error  // why no more can be read; set once
}

// newGuard returns a guard that begins with the bytes already read, which it
// may not keep for longer than until its first read of src.
func newGuard(read []byte, src io.Reader, maxEvent int) *guard {
	return &guard{src: src, max: maxEvent, pending: read}
}

// Read hands over the next event, or as much of it as fits.
func (g *guard) Read(p []byte) (int, error) {
	for len(g.ready) == 0 {
		switch {
		case len(g.pending) > 0:
			g.scan()
		case g.err != nil:
			return 0, g.err
		default:
			g.fill()
		}
	}
	n := copy(p, g.ready)
	g.ready = g.ready[n:]
	if len(g.ready) == 0 {
		g.event = g.event[:0]
	}
	return n, nil
}

// fill reads the next chunk. Only a clean end completes a last event that
// lacks its blank line; after any other error it is half an event.
func (g *guard) fill() {
	switch {
	case g.chunk == nil:
		g.chunk = make([]byte, firstChunk)
	case g.filled:
		g.chunk = make([]byte, streamChunk)
	}
	n, err := g.src.Read(g.chunk)
	g.pending, g.filled = g.chunk[:n], n == firstChunk && len(g.chunk) == firstChunk
	if err == nil {
		return
	}
	g.err = err
	if err == io.EOF && n == 0 {
		g.finish()
	}
}

// finish ends the last line and event at a clean end of the stream.
func (g *guard) finish() {
	if len(g.line) > 0 {
		g.endLine()
	}
	if len(g.ready) == 0 {
		g.endEvent()
	}
}

// scan looks at pending bytes until an event is complete or they are used up.
func (g *guard) scan() {
	for len(g.pending) > 0 && len(g.ready) == 0 {
		if g.skipLF {
			g.skipLF = false
			if g.pending[0] == '\n' {
				g.pending = g.pending[1:]
				continue
			}
		}
		end := lineEnd(g.pending)
		n := end
		if end < 0 {
			n = len(g.pending)
		}
		if len(g.line)+n+len(g.event) > g.max {
			g.err, g.pending = errEventTooLarge, nil
			return
		}
		g.line = append(g.line, g.pending[:n]...)
		if end < 0 {
			g.pending = nil
			break
		}
		g.skipLF = g.pending[end] == '\r'
		g.pending = g.pending[end+1:]
		g.endLine()
	}
	if len(g.pending) == 0 && errors.Is(g.err, io.EOF) && len(g.ready) == 0 {
		g.finish()
	}
}

// lineEnd returns the index of the first CR or LF, -1 for none.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// endLine takes the line over into the event; a blank one completes it.
func (g *guard) endLine() {
	line := g.line
	g.line = g.line[:0]
	if !g.begun {
		g.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	switch {
	case len(line) == 0:
		g.endEvent()
	case line[0] == ':': // a comment
	default:
		g.event = append(append(g.event, line...), '\n')
	}
}

func (g *guard) endEvent() {
	if len(g.event) > 0 {
		g.event = append(g.event, '\n')
		g.ready = g.event
	}
}

// sseEvents reads the events of one event stream. It belongs to one goroutine.
type sseEvents struct {
	guard  *guard
	reader *sse.EventStreamReader
	joined []byte // the data of an event with several data lines
	// stray is the first line that is none of an event stream: a client must
	// ignore it, but a stream of nothing else is not an empty one.
	stray []byte
}

func newSSEEvents(read []byte, src io.Reader, maxEvent int) *sseEvents {
	g := newGuard(read, src, maxEvent)
	return &sseEvents{guard: g, reader: sse.NewEventStreamReader(g, maxEvent+16)}
}

// next returns the next event that has data. Both results are valid until the
// call after; io.EOF is a clean end. No call may follow an error.
func (s *sseEvents) next() (name string, data []byte, err error) {
	for {
		block, err := s.reader.ReadEvent()
		if err != nil {
			// The reader hides some errors and calls a cancellation the end.
			if s.guard.err != nil {
				err = s.guard.err
			}
			return "", nil, err
		}
		if name, data, ok := s.parse(block); ok {
			return name, data, nil
		}
	}
}

// parse reads the fields of one event. The id is not kept: A2A has no contract
// on it, a stream is resumed by subscribing to the task.
func (s *sseEvents) parse(block []byte) (name string, data []byte, ok bool) {
	lines := 0
	for len(block) > 0 {
		line := block
		if i := bytes.IndexByte(block, '\n'); i >= 0 {
			line, block = block[:i], block[i+1:]
		} else {
			block = nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id", "retry":
		case "event":
			name = string(value)
		case "data":
			switch lines++; lines {
			case 1:
				data = value
			case 2:
				s.joined = append(append(append(s.joined[:0], data...), '\n'), value...)
				data = s.joined
			default:
				s.joined = append(append(s.joined, '\n'), value...)
				data = s.joined
			}
		default:
			if s.stray == nil {
				s.stray = bytes.Clone(line[:min(len(line), excerptBytes)])
			}
		}
	}
	return name, data, lines > 0
}
