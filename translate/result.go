package translate

import (
	"strconv"
	"strings"

	"a2agate/a2a"
)

// StatusArtifactID is what a page of a task's last status message is called
// for, where no artifact has that id.
const StatusArtifactID = "@status"

// ResultFromMessage renders an agent's direct reply: kind message, status
// completed. A message has no task; only its context can be continued.
func ResultFromMessage(m *a2a.Message, o Options) Result {
	a := answer{o: &o, kind: "message", status: StatusCompleted}
	a.addNotes(o.Notes)
	a.add(m.Parts, origin{messageID: m.MessageID})
	if len(a.pieces) == 0 {
		a.say(upperFirst(o.title()) + " sent an empty reply.")
	}
	return a.result()
}

// ResultFromTask renders a task as last seen: artifacts in the agent's order,
// then the words of its last status where they add something. What the user
// said never comes back, and what is said twice is shown once.
func ResultFromTask(t *a2a.Task, o Options) Result {
	a := answer{o: &o, kind: "task"}
	a.task(t)
	return a.result()
}

// ResultFromSnapshot renders what is known of a followed exchange at one
// moment: the reply, the task, why there is neither, or that the agent works
// on. It never returns an empty answer.
func ResultFromSnapshot(s a2a.Snapshot, o Options) Result {
	o.Notes = append(append([]string(nil), o.Notes...), s.Notes...)
	switch {
	case s.Message != nil:
		return ResultFromMessage(s.Message, o)
	case s.Err != nil:
		a := answer{o: &o}
		a.addNotes(o.Notes)
		if s.Task != nil {
			a.kind = "task"
			a.addNotes(s.Task.Notes)
			a.artifacts = s.Task.Artifacts
			a.addArtifacts(s.Task)
		}
		a.fail(errorFrom(s.Err, &o))
		return a.result()
	case s.Task == nil:
		a := answer{o: &o, status: StatusWorking}
		if o.Task != "" {
			a.kind = "task"
		}
		a.addNotes(o.Notes)
		a.note(s.Trouble)
		a.hint = a.workingHint(s.Progress)
		return a.result()
	}
	a := answer{o: &o, kind: "task"}
	if !s.Task.Status.State.Settled() {
		a.note(s.Trouble)
	}
	a.progress = s.Progress
	a.task(s.Task)
	return a.result()
}

func (a *answer) addNotes(notes []string) {
	for _, n := range notes {
		a.note(n)
	}
}

func (a *answer) task(t *a2a.Task) {
	a.state = t.Status.State
	if a.state == "" {
		a.state = a2a.StateUnspecified
	}
	a.status = StatusFromState(a.state)
	a.isError = a.status.IsError()
	a.artifacts = t.Artifacts
	a.addNotes(a.o.Notes)
	a.addNotes(t.Notes)
	a.note(noteFromState(t.Status.State))
	a.addArtifacts(t)
	a.addStatus(t)
	a.addHistory(t)
	a.hint = a.hintFromTask(t)
	if len(a.pieces) == 0 && a.hint == "" {
		a.say(a.silence())
	}
}

func (a *answer) addArtifacts(t *a2a.Task) {
	for i := range t.Artifacts {
		art := &t.Artifacts[i]
		from := origin{artifact: art, readable: art.ArtifactID}
		if len(art.ArtifactID) > maxID {
			from.readable = ""
		}
		a.add(art.Parts, from)
	}
}

// addStatus adds the words of the last status, or of the agent's last turn in
// the history where there is nothing else. While the agent works they are
// progress, not an answer.
func (a *answer) addStatus(t *a2a.Task) {
	if a.status == StatusWorking {
		return
	}
	m := t.Status.Message
	if m != nil && m.Role == a2a.RoleUser {
		m = nil // an agent that echoes the caller's own words
	}
	if m == nil || len(m.Parts) == 0 {
		if len(a.pieces) > 0 && !a.state.Interrupted() {
			return
		}
		if m = lastWord(t); m == nil {
			return
		}
	}
	from := a.group(origin{messageID: m.MessageID, readable: statusReadable(t, m)})
	said := saidBy(a.pieces)
	for _, pc := range piecesFromParts(nil, m.Parts, from, a.o) {
		if said[pc.identity()] {
			// A page would count what is not shown here.
			a.groups[from.group].readable = ""
			continue
		}
		a.pieces = append(a.pieces, pc)
	}
}

// lastWord is the agent's last message in the history.
func lastWord(t *a2a.Task) *a2a.Message {
	for i := len(t.History) - 1; i >= 0; i-- {
		if m := &t.History[i]; m.Role == a2a.RoleAgent && len(m.Parts) > 0 {
			return m
		}
	}
	return nil
}

func statusReadable(t *a2a.Task, m *a2a.Message) string {
	if t.Status.Message != m {
		return ""
	}
	return StatusArtifactID
}

// saidBy is the set of what pieces say, each alone and the texts of an artifact
// together: a status may repeat an artifact that came in many parts.
func saidBy(ps []piece) map[string]bool {
	said := make(map[string]bool, len(ps)+1)
	for start := 0; start < len(ps); {
		end := start
		var texts []string
		for end < len(ps) && ps[end].group == ps[start].group {
			said[ps[end].identity()] = true
			if ps[end].kind == pieceText {
				texts = append(texts, ps[end].text)
			}
			end++
		}
		if len(texts) > 1 {
			said[strings.TrimSpace(strings.Join(texts, ""))] = true
			said[strings.TrimSpace(strings.Join(texts, "\n"))] = true
		}
		start = end
	}
	return said
}

// identity is what makes two pieces the same: their bytes, else their words.
func (pc *piece) identity() string {
	if b := pc.bytes(); b != "" {
		return b
	}
	return strings.TrimSpace(pc.words())
}

// silence says in words that a settled task brought nothing.
func (a *answer) silence() string {
	who := upperFirst(a.o.title())
	switch a.status {
	case StatusCompleted:
		return who + " completed the task without any output."
	case StatusRejected:
		return who + " rejected the task and gave no reason."
	case StatusCancelled:
		return "The task was cancelled."
	case StatusFailed:
		return who + " failed the task and gave no reason."
	case StatusWorking, StatusInputRequired, StatusAuthRequired:
	}
	return who + " sent nothing."
}

// hintFromTask tells the caller what to do next with an open task: wait,
// answer, or sign in.
func (a *answer) hintFromTask(t *a2a.Task) string {
	switch a.status {
	case StatusWorking:
		return a.workingHint(or(ProgressFromStatus(t.Status), a.progress))
	case StatusInputRequired:
		return a.questionHint(spokenStatus(t))
	case StatusAuthRequired:
		return a.signInHint(spokenStatus(t))
	case StatusCompleted, StatusFailed, StatusRejected, StatusCancelled:
	}
	return ""
}

func (a *answer) workingHint(latest string) string {
	var b strings.Builder
	b.WriteString(upperFirst(a.o.title()) + " is still working")
	if a.o.Elapsed > 0 {
		b.WriteString(" (" + elapsed(a.o.Elapsed) + ")")
	}
	b.WriteString(". The work goes on.")
	if latest = oneLine(latest, progressChars); latest != "" {
		b.WriteString(" Latest word: " + latest)
	}
	if a.o.Task != "" {
		b.WriteString("\nTo collect the answer, call " + a.o.waitCall() + ".")
	}
	return b.String()
}

func (a *answer) questionHint(st a2a.Status) string {
	s := upperFirst(a.o.title()) + " waits for an answer."
	if a.o.Task != "" {
		s += " To answer, call " + a.o.answerCall() + "."
	}
	if secretStatus(st) {
		s += " It seems to ask for a secret: do not pass a password, token or key through a tool call; let the user give it to the agent directly."
	}
	return s
}

func (a *answer) signInHint(st a2a.Status) string {
	s := upperFirst(a.o.title()) + " needs the user to sign in"
	if u := AuthURLFromStatus(st); u != "" {
		s += ": " + u
	} else {
		s += " before it goes on."
	}
	s += "\n"
	if a.o.Task != "" {
		s += "After signing in, call " + a.o.waitCall() + ". "
	}
	return s + "Never pass a password, token or key through a tool call."
}

// progressChars bounds a line of progress.
const progressChars = 200

// ProgressFromStatus is the agent's word on how it stands, as one line of at
// most 200 characters; "" where it gave none or repeats the caller.
func ProgressFromStatus(st a2a.Status) string {
	if st.Message == nil || st.Message.Role == a2a.RoleUser {
		return ""
	}
	var words []string
	for i := range st.Message.Parts {
		if p := &st.Message.Parts[i]; p.Kind == a2a.PartText && p.Text != "" {
			words = append(words, p.Text)
		}
	}
	return oneLine(CutRunes(strings.Join(words, " "), 4*progressChars), progressChars)
}

// StatusMessageFromTask is the statusMessage of an MCP task: the agent's word,
// else the A2A state where the MCP status says less than it, else "".
func StatusMessageFromTask(t *a2a.Task) string {
	if s := ProgressFromStatus(t.Status); s != "" {
		return s
	}
	switch t.Status.State {
	case a2a.StateWorking, a2a.StateCompleted, a2a.StateInputRequired, a2a.StateCanceled:
		return ""
	case "":
		return "A2A state " + string(a2a.StateUnspecified)
	}
	return "A2A state " + oneLine(string(t.Status.State), 80)
}

// addHistory adds the newest turns, within a third of the result's limit;
// older ones that do not fit are counted in a note.
func (a *answer) addHistory(t *a2a.Task) {
	n := a.o.HistoryLength
	if n == 0 || len(t.History) == 0 {
		return
	}
	if n < 0 || n > len(t.History) {
		n = len(t.History)
	}
	room := a.o.resultChars() / 3
	turns := make([]turn, 0, min(n, 64))
	for i := len(t.History) - 1; i >= len(t.History)-n; i-- {
		tn := a.turnFromMessage(&t.History[i])
		size := runes(tn.text)
		if size > room && len(turns) > 0 {
			a.note(strconv.Itoa(i+1-(len(t.History)-n)) + " earlier turns of the history left out")
			break
		}
		tn.text = CutRunes(tn.text, max(room, minShare))
		room -= size
		turns = append(turns, tn)
	}
	for i, j := 0, len(turns)-1; i < j; i, j = i+1, j-1 {
		turns[i], turns[j] = turns[j], turns[i]
	}
	a.history = turns
}

func (a *answer) turnFromMessage(m *a2a.Message) turn {
	role := "agent"
	if m.Role == a2a.RoleUser {
		role = "user"
	}
	ps := piecesFromParts(nil, m.Parts, origin{}, a.o)
	words := make([]string, 0, len(ps))
	for i := range ps {
		words = append(words, ps[i].words())
	}
	return turn{role: role, text: strings.Join(words, "\n")}
}
