package a2a

import "reflect"

// eventTaskID returns the id of the task that an event is about, "" where the
// agent left it out.
func eventTaskID(ev Event) string {
	switch {
	case ev.Task != nil:
		return ev.Task.ID
	case ev.Status != nil:
		return ev.Status.TaskID
	case ev.Artifact != nil:
		return ev.Artifact.TaskID
	}
	return ""
}

// sameStatus reports whether two statuses say the same. Timestamps do not
// count: some agents stamp every answer anew.
func sameStatus(a, b Status) bool {
	return a.State == b.State && sameMessage(a.Message, b.Message)
}

// sameContent reports whether two tasks of the same status say the same
// beside it.
func sameContent(a, b *Task) bool {
	return a == b || a != nil && b != nil &&
		a.ContextID == b.ContextID &&
		len(a.Artifacts) == len(b.Artifacts) && len(a.History) == len(b.History) &&
		string(a.Metadata) == string(b.Metadata) &&
		reflect.DeepEqual(a.Artifacts, b.Artifacts) && reflect.DeepEqual(a.History, b.History)
}

// maxQuestions bounds the questions remembered of tasks nobody follows.
const maxQuestions = 1024

// maxQuestionBytes is up to which size a question is remembered.
const maxQuestionBytes = 16 << 10

// questionMemory keeps what a task asked when it was last watched, so that a
// message that answers it later is not taken to have led to the same question
// again. It belongs to Follower.mu.
type questionMemory struct {
	asked map[string]*Status
	order []string // oldest first; may hold ids that are gone
}

// rememberQuestion keeps the status of an interrupted task that is dropped.
func (f *Follower) rememberQuestion(taskID string, s Status) {
	if s.Message != nil && messageSize(s.Message) > maxQuestionBytes {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := &f.questions
	if m.asked == nil {
		m.asked = make(map[string]*Status)
	}
	if _, there := m.asked[taskID]; !there {
		m.order = append(m.order, taskID)
	}
	m.asked[taskID] = &s
	for len(m.order) > maxQuestions {
		delete(m.asked, m.order[0])
		m.order = m.order[1:]
	}
}

// recallQuestion returns and forgets what a task asked, nil for nothing known.
func (f *Follower) recallQuestion(taskID string) *Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.questions.asked[taskID]
	delete(f.questions.asked, taskID)
	return s
}
