package translate

import (
	"strconv"
	"strings"
	"time"
)

// Handles are what stands for the agent's own ids in an answer; empty where
// none was given out.
type Handles struct {
	Context string // cx_…
	Task    string // tk_…
}

// StructuredPolicy says when a result carries structuredContent.
type StructuredPolicy string

// The policies. The zero value is StructuredAuto.
const (
	// StructuredAuto leaves it out where an image or audio is inlined: some
	// clients show nothing else when it is there.
	StructuredAuto   StructuredPolicy = "auto"
	StructuredAlways StructuredPolicy = "always"
	StructuredNever  StructuredPolicy = "never"
	// StructuredData is for a tool that declares its agent's own output
	// schema: structuredContent is the answer's only data part alone, verbatim.
	// It is left out where there is no such part.
	StructuredData StructuredPolicy = "data"
)

// The defaults of Options.
const (
	DefaultResultChars = 40000
	DefaultMediaBytes  = 4 << 20
	DefaultWaitSeconds = 50
	DefaultSendTool    = "a2a_send_message"
	DefaultGetTool     = "a2a_get_task"
)

// AllHistory asks for every turn of a history.
const AllHistory = -1

// Options say how an answer is to be rendered. The zero value is usable.
type Options struct {
	// Agent is the alias, Title the name for sentences (the card's name; the
	// alias without one).
	Agent string
	Title string
	Handles
	// ResultChars bounds the text of each half, in characters; 0 is
	// DefaultResultChars. MediaBytes bounds one inlined medium, decoded; 0 is
	// DefaultMediaBytes.
	ResultChars int
	MediaBytes  int
	Structured  StructuredPolicy
	// HistoryLength adds the newest turns of the history: 0 none, AllHistory
	// all there are.
	HistoryLength int
	// Notes are put in front of the envelope's own.
	Notes []string
	// Elapsed is how long the caller has waited, for the working sentence; 0
	// leaves it out.
	Elapsed time.Duration
	// WaitSeconds is what a caller is told to wait with; 0 is
	// DefaultWaitSeconds.
	WaitSeconds int
	// SendTool and GetTool name the calls that answer and that read more;
	// empty means a2a_send_message and a2a_get_task.
	SendTool string
	GetTool  string
	// Status replaces "failed" in the envelope of an error that says nothing
	// about the task (a refused cancel, for instance); "" leaves it.
	Status Status
}

func (o *Options) resultChars() int {
	if o.ResultChars > 0 {
		return o.ResultChars
	}
	return DefaultResultChars
}

func (o *Options) mediaBytes() int {
	if o.MediaBytes > 0 {
		return o.MediaBytes
	}
	return DefaultMediaBytes
}

// title is the agent in a sentence.
func (o *Options) title() string {
	for _, s := range [...]string{o.Title, o.Agent} {
		if s = oneLine(s, 80); s != "" {
			return s
		}
	}
	return "the agent"
}

// upperFirst begins a sentence of ours; names keep their spelling.
func upperFirst(s string) string {
	if s == "the agent" || strings.HasPrefix(s, "the agent ") {
		return "T" + s[1:]
	}
	return s
}

func or(s, fallback string) string {
	if s != "" {
		return s
	}
	return fallback
}

// The calls that a caller is told to make next. They are complete and can be
// copied: a model that reads one needs to fill in no more than the text.

func (o *Options) waitCall() string {
	wait := o.WaitSeconds
	if wait <= 0 {
		wait = DefaultWaitSeconds
	}
	b := newObject(nil)
	b.str("taskHandle", o.Task)
	b.key("waitSeconds")
	b.dst = strconv.AppendInt(b.dst, int64(wait), 10)
	return or(o.GetTool, DefaultGetTool) + " with " + string(b.end())
}

func (o *Options) answerCall() string {
	b := newObject(nil)
	b.str("taskHandle", o.Task)
	b.str("text", "…")
	return or(o.SendTool, DefaultSendTool) + " with " + string(b.end())
}

func (o *Options) continueCall() string {
	b := newObject(nil)
	b.str("contextHandle", o.Context)
	b.str("text", "…")
	return or(o.SendTool, DefaultSendTool) + " with " + string(b.end())
}

func (o *Options) pageCall(artifactID string, offset int) string {
	b := newObject(nil)
	b.str("taskHandle", o.Task)
	b.str("artifactId", artifactID)
	b.key("offset")
	b.dst = strconv.AppendInt(b.dst, int64(offset), 10)
	return or(o.GetTool, DefaultGetTool) + " with " + string(b.end())
}

// elapsed says the waited time as "50s" or "4m00s".
func elapsed(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	if s < 60 {
		return strconv.Itoa(s) + "s"
	}
	sec := strconv.Itoa(s % 60)
	if len(sec) == 1 {
		sec = "0" + sec
	}
	return strconv.Itoa(s/60) + "m" + sec + "s"
}

// ArtifactURI is the URI of an artifact of a followed task, as the resource
// template a2a://tasks/{taskHandle}/artifacts/{artifactId} has it.
func ArtifactURI(taskHandle, artifactID string) string {
	return "a2a://tasks/" + escapePath(taskHandle) + "/artifacts/" + escapePath(artifactID)
}

// escapePath escapes s for one segment of a URI: everything but RFC 3986's
// unreserved characters, so that an agent's own id cannot add a segment.
func escapePath(s string) string {
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			c == '-' || c == '_' || c == '.' || c == '~' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upper[c>>4])
		b.WriteByte(upper[c&15])
	}
	return b.String()
}
