package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"a2agate/a2a"
)

// docs/protocol.md promises; these tests hold it to the code.
func protocolPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPageHasTheStates(t *testing.T) {
	doc := protocolPage(t)
	for name, s := range constsOf(t, "model.go", "State", "State") {
		st := a2a.State(s)
		short := strings.TrimPrefix(s, "TASK_STATE_")
		row := regexp.MustCompile(`(?m)^\| ` + short + `[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|`).FindStringSubmatch(doc)
		if row == nil {
			t.Errorf("%s has no row", name)
			continue
		}
		if want := "`" + string(StatusFromState(st)) + "`"; strings.TrimSpace(row[1]) != want {
			t.Errorf("%s: status %s, want %s", name, row[1], want)
		}
		if strings.Contains(row[2], "yes") != StatusFromState(st).IsError() {
			t.Errorf("%s: isError %s", name, row[2])
		}
		if !strings.Contains(row[3], "`"+string(TaskStatusFromState(st))+"`") {
			t.Errorf("%s: task status %s", name, row[3])
		}
	}
}

func TestPageHasTheErrors(t *testing.T) {
	doc := protocolPage(t)
	for code := a2a.CodeVersionNotSupported; code <= a2a.CodeTaskNotFound; code++ {
		if row := fmt.Sprintf("| %d | `%s (%d): ` |", code, ErrorName(code), code); !strings.Contains(doc, row) {
			t.Errorf("no row %q", row)
		}
	}
}

// The example on the page is what the code makes of it.
func TestPageExample(t *testing.T) {
	doc := protocolPage(t)
	_, section, _ := strings.Cut(doc, "### An example")
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(section, 2)
	if len(blocks) != 2 {
		t.Fatal("the example is gone")
	}
	task, err := taskFromTestJSON([]byte(blocks[0][1]))
	if err != nil {
		t.Fatal(err)
	}
	r := ResultFromTask(task, Options{Agent: "invoice", Title: "Invoice Helper", Handles: Handles{Context: "cx_abc", Task: "tk_def"}})
	got := regexp.MustCompile(`,"_meta":\{"a2agate/a2a":\{.*?\}\}`).ReplaceAllString(string(AppendResult(nil, r, Rev20260728, nil)), "")
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(blocks[1][1])); err != nil {
		t.Fatal(err)
	}
	if got != want.String() {
		t.Errorf("got  %s\nwant %s", got, want.String())
	}
}

// The asks and the answer on the page are what the code reads and writes.
func TestPageAsks(t *testing.T) {
	_, section, _ := strings.Cut(protocolPage(t), "### The extension `urn:a2agate:ext:ask:1`")
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(section, 2)
	if len(blocks) != 2 {
		t.Fatal("the example is gone")
	}
	part := partFromTestJSON(json.RawMessage(blocks[0][1]))
	asks := AsksFromStatus(asking(a2a.StateInputRequired, part))
	if len(asks) != 2 || asks[0].Key != "size" || asks[0].Note != "" || asks[1].URL != "https://pay.acme.test/o/4711" {
		t.Fatalf("%+v", asks)
	}
	var want struct{ Parts []json.RawMessage }
	if err := json.Unmarshal([]byte(blocks[1][1]), &want); err != nil {
		t.Fatal(err)
	}
	got := MessageFromAnswers(asks, map[string]Answer{
		"size": {Action: "accept", Content: json.RawMessage(`{"size":"M"}`)}, "pay": {Action: "accept"},
	})
	for i, raw := range want.Parts {
		p := partFromTestJSON(raw)
		if p.Text != got[i].Text || string(p.Data) != string(got[i].Data) || string(p.Metadata) != string(got[i].Metadata) {
			t.Errorf("part %d: %+v, want %+v", i, got[i], p)
		}
	}
}

func TestPageLimits(t *testing.T) {
	doc := protocolPage(t)
	for _, want := range []string{
		fmt.Sprintf("at most `limits.resultChars` characters (%d)", DefaultResultChars),
		fmt.Sprintf("at most %d bytes, the purpose first", DescriptionBytes),
		fmt.Sprintf("over %d KiB, %d levels or %d objects", maxSchemaBytes>>10, maxSchemaDepth, maxSchemaNodes),
		fmt.Sprintf("the alias (at most %d characters), or prefix and skill id (at most %d)", AgentNameLen, SkillNameLen),
		fmt.Sprintf("More than %d parts", maxPieces),
		fmt.Sprintf("at most %d KiB", maxUnknown>>10),
		fmt.Sprintf("longer than %d bytes", maxID),
		fmt.Sprintf("At most %d asks", maxAsks),
		fmt.Sprintf("`%s`", StatusArtifactID), "`" + AskExtension + "`", "`" + BlockMetaKey + "`", "`" + EnvelopeMetaKey + "`",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	// The marker on the page is one that the code writes.
	text := strings.Repeat("x", 400_000)
	r := ResultFromTask(textTask(text), Options{Handles: Handles{Task: "tk_…"}})
	m := marker.FindString(contentText(r, true, true))
	if !strings.Contains(doc, m) || m == "" {
		t.Errorf("the page has another marker than %q", m)
	}
}
