package translate

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"strconv"
	"strings"
	"testing"

	"a2agate/a2a"
)

// constsOf reads the constants of a type from package a2a's source, so that a
// state or code added there cannot be forgotten here.
func constsOf(t *testing.T, file, typ, prefix string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(gotoken.NewFileSet(), "../a2a/"+file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != gotoken.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			id, _ := v.Type.(*ast.Ident)
			if typ != "" && (id == nil || id.Name != typ) || !strings.HasPrefix(v.Names[0].Name, prefix) || len(v.Values) == 0 {
				continue
			}
			switch x := v.Values[0].(type) {
			case *ast.BasicLit:
				s, err := strconv.Unquote(x.Value)
				if err != nil {
					s = x.Value
				}
				out[v.Names[0].Name] = s
			case *ast.UnaryExpr:
				out[v.Names[0].Name] = "-" + x.X.(*ast.BasicLit).Value
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("found no constants %s in %s", typ, file)
	}
	return out
}

func TestStates(t *testing.T) {
	table := map[a2a.State]struct {
		status  Status
		task    TaskStatus
		isError bool
		note    bool
	}{
		a2a.StateUnspecified:   {StatusFailed, TaskCompleted, true, true},
		a2a.StateSubmitted:     {StatusWorking, TaskWorking, false, false},
		a2a.StateWorking:       {StatusWorking, TaskWorking, false, false},
		a2a.StateCompleted:     {StatusCompleted, TaskCompleted, false, false},
		a2a.StateFailed:        {StatusFailed, TaskCompleted, true, false},
		a2a.StateCanceled:      {StatusCancelled, TaskCancelled, false, false},
		a2a.StateInputRequired: {StatusInputRequired, TaskInputRequired, false, false},
		a2a.StateRejected:      {StatusRejected, TaskCompleted, true, false},
		a2a.StateAuthRequired:  {StatusAuthRequired, TaskCompleted, true, false},
		"":                     {StatusFailed, TaskCompleted, true, true},
		"TASK_STATE_PAUSED":    {StatusWorking, TaskWorking, false, true},
	}
	for name, s := range constsOf(t, "model.go", "State", "State") {
		if _, ok := table[a2a.State(s)]; !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
	for s, want := range table {
		if got := StatusFromState(s); got != want.status || got.IsError() != want.isError {
			t.Errorf("%q: status %s, isError %v", s, got, got.IsError())
		}
		if got := TaskStatusFromState(s); got != want.task {
			t.Errorf("%q: task status %s, want %s", s, got, want.task)
		}
		if got := noteFromState(s) != ""; got != want.note {
			t.Errorf("%q: note %q", s, noteFromState(s))
		}
		if s.Terminal() != (TaskStatusFromState(s).Terminal() && s != "" && s != a2a.StateUnspecified && s != a2a.StateAuthRequired) {
			t.Errorf("%q: terminal here and there differ", s)
		}
		r := ResultFromTask(&a2a.Task{Status: a2a.Status{State: s}}, Options{Agent: "x"})
		if r.IsError != want.isError || len(r.Content) == 0 {
			t.Errorf("%q: result isError %v with %d blocks", s, r.IsError, len(r.Content))
		}
	}
}

func TestErrorNames(t *testing.T) {
	codes := constsOf(t, "errors.go", "", "Code")
	if len(codes) != 9 {
		t.Fatalf("%d codes, want the nine of A2A 5.4", len(codes))
	}
	for name, value := range codes {
		code, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimPrefix(name, "Code")
		if got := ErrorName(code); got != want {
			t.Errorf("%d is %q, want %q", code, got, want)
		}
		r := ResultFromError(&a2a.Error{Cause: a2a.CauseAgent, Code: code, Message: "no"}, Options{Agent: "x"})
		if text := contentText(r, true, false); !r.IsError || text != want+" ("+value+"): no\n" {
			t.Errorf("%d: isError %v, %q", code, r.IsError, text)
		}
		if want := `"a2aErrorCode":` + value; !strings.Contains(string(r.Structured), want) {
			t.Errorf("%d: no %s in %s", code, want, r.Structured)
		}
		lost := ErrorFromLost(&a2a.Error{Code: code, Reason: "R", Message: "no"}, Options{Agent: "x", Handles: Handles{Task: "tk_1"}})
		if lost.Code != CodeInternal {
			t.Errorf("%d became the JSON-RPC code %d", code, lost.Code)
		}
		if want := `{"a2aErrorCode":` + value + `,"a2aErrorReason":"R","agent":"x","taskHandle":"tk_1"}`; string(lost.Data) != want {
			t.Errorf("data %s, want %s", lost.Data, want)
		}
		if !strings.Contains(lost.Message, "tk_1") {
			t.Errorf("the handle is not in the message: %s", lost.Message)
		}
	}
	if ErrorName(-32603) != "" || ErrorName(0) != "" {
		t.Error("a foreign code has a name")
	}
}

func TestErrorLines(t *testing.T) {
	for _, c := range []struct {
		err  a2a.Error
		want string
	}{
		{a2a.Error{Message: "quota", Code: -32050}, "quota (agent error code -32050)"},
		{a2a.Error{Message: "code -32050 quota", Code: -32050}, "code -32050 quota"},
		{a2a.Error{Message: "a -320501", Code: -32050}, "a -320501 (agent error code -32050)"},
		{a2a.Error{Cause: a2a.CauseHTTP, Message: "busy", HTTPStatus: 429, RetryAfter: 6500e6}, "busy (HTTP 429); try again in 7 s"},
		{a2a.Error{Cause: a2a.CauseHTTP, Message: "the agent answered HTTP 503", HTTPStatus: 503}, "the agent answered HTTP 503; try again later"},
		{a2a.Error{Cause: a2a.CauseAuth, Message: "no", HTTPStatus: 401, Challenge: "Bearer\r\nx"},
			"no (HTTP 401; the agent asks for Bearer x); set the agent's auth in the gateway's configuration"},
		{a2a.Error{Cause: a2a.CauseTimeout, Message: "slow"}, "slow; the agent may still be at work: check before sending it again"},
		{a2a.Error{Cause: a2a.CauseTimeout, Message: "slow", Unsent: true}, "slow; nothing was sent: try again"},
		{a2a.Error{}, "the agent gave no reason"},
		{a2a.Error{Message: "a\x1b[31m\nb"}, "a b"},
	} {
		if got := errorLine(&c.err); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

// An error of another type may hold anything: its text is not shown.
func TestForeignErrorIsNotShown(t *testing.T) {
	r := ResultFromSnapshot(a2a.Snapshot{Err: strconv.ErrSyntax, Done: true}, Options{Agent: "x"})
	if got := contentText(r, true, false); strings.Contains(got, "syntax") || !r.IsError {
		t.Errorf("%q", got)
	}
	var none *a2a.Error
	ResultFromError(none, Options{}) // must not panic
	ErrorFromLost(none, Options{})
}
