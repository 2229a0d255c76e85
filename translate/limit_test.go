package translate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/a2a"
)

func textTask(texts ...string) *a2a.Task {
	t := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}}
	for i, s := range texts {
		t.Artifacts = append(t.Artifacts, a2a.Artifact{
			ArtifactID: "a" + strconv.Itoa(i+1), Parts: []a2a.Part{{Kind: a2a.PartText, Text: s}},
		})
	}
	return t
}

var opts = Options{Agent: "x", Handles: Handles{Context: "cx_1", Task: "tk_1"}}

// pages reads an artifact page by page from offset on.
func pages(t testing.TB, task *a2a.Task, id string, offset int, o Options) string {
	t.Helper()
	var b strings.Builder
	for {
		r, err := ResultFromPage(task, id, offset, o)
		if err != nil {
			t.Fatal(err)
		}
		var env struct {
			Text string
			Page struct {
				ArtifactID string
				Offset     int
				NextOffset *int
				Total      int
			}
		}
		if err := json.Unmarshal(r.Structured, &env); err != nil {
			t.Fatal(err)
		}
		if env.Page.ArtifactID != id || env.Page.Offset != offset {
			t.Fatalf("page says %+v, asked for %s %d", env.Page, id, offset)
		}
		if env.Text != "" && !strings.HasPrefix(contentText(r, true, true), env.Text) {
			t.Fatalf("the halves differ at %d", offset)
		}
		if n := runes(env.Text); n > o.resultChars() {
			t.Fatalf("a page of %d characters", n)
		}
		b.WriteString(env.Text)
		if env.Page.NextOffset == nil {
			if end := offset + runes(env.Text); end != env.Page.Total {
				t.Fatalf("ended at %d of %d", end, env.Page.Total)
			}
			return b.String()
		}
		if *env.Page.NextOffset != offset+runes(env.Text) {
			t.Fatalf("next is %d after %d characters from %d", *env.Page.NextOffset, runes(env.Text), offset)
		}
		offset = *env.Page.NextOffset
	}
}

// What small answers leave of the limit is the large ones'.
func TestEvenShare(t *testing.T) {
	for _, c := range []struct {
		sizes       []int
		limit, want int
	}{
		{[]int{100, 100}, 100, 50},
		{[]int{10, 100, 100}, 100, 45},
		{[]int{100, 10, 20, 100}, 100, 35},
		{[]int{1000, 1}, 100, 99},
		{[]int{1000}, 100, 100},
		{[]int{50, 50}, 100, maxInt},
		{nil, 100, maxInt},
	} {
		if got := evenShare(c.sizes, c.limit); got != c.want {
			t.Errorf("%v within %d: %d, want %d", c.sizes, c.limit, got, c.want)
		}
	}
	small, large := strings.Repeat("s", 1000), strings.Repeat("l", 30_000)
	for _, c := range ResultFromTask(textTask(large, small, large), Options{Agent: "x", ResultChars: 20_000, Handles: opts.Handles}).Content {
		if text, ok := c.(mcp.TextContent); ok && strings.HasPrefix(text.Text, "l") && (len(text.Text) < 9000 || len(text.Text) > 9700) {
			t.Errorf("a large artifact has %d of its 9500 characters", len(text.Text))
		}
	}
}

// Head and tail of one part are one block; what follows from another part of
// the artifact stays another block, with its own identity.
func TestCutOverParts(t *testing.T) {
	blocks := func(parts ...a2a.Part) []string {
		task := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{{ArtifactID: "a", Parts: parts}}}
		var out []string
		for _, c := range ResultFromTask(task, Options{Agent: "x", ResultChars: 10_000, Handles: opts.Handles}).Content {
			if text, ok := c.(mcp.TextContent); ok && !strings.HasPrefix(text.Text, "Status:") {
				out = append(out, regexp.MustCompile(`x{2,}|y{2,}`).ReplaceAllStringFunc(text.Text, func(s string) string { return s[:1] }))
			}
		}
		return out
	}
	part := func(letter, file string) a2a.Part {
		return a2a.Part{Kind: a2a.PartText, Text: strings.Repeat(letter, 20_000), Filename: file}
	}
	gap := regexp.MustCompile(`\[… \d+ characters left out\. Call [^\]]*\]`)
	for _, c := range []struct {
		parts []a2a.Part
		want  string
	}{
		{[]a2a.Part{part("x", "")}, "x\nGAP\nx"},
		{[]a2a.Part{part("x", "one"), part("y", "two")}, "x\nGAP|y"},
		{[]a2a.Part{part("x", ""), part("y", "")}, "x\nGAP\ny"},
	} {
		if got := gap.ReplaceAllString(strings.Join(blocks(c.parts...), "|"), "GAP"); got != c.want {
			t.Errorf("%d parts: %q, want %q", len(c.parts), got, c.want)
		}
	}
}

// A 400 000-character answer stays within the limit, keeps head and tail,
// and names the call that reads the rest, which then fits exactly.
func TestLongAnswer(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 400_000; i++ {
		fmt.Fprintf(&b, "line %d: überall ein Wort 日本\n", i)
	}
	whole := b.String()
	task := textTask(whole)
	for _, limit := range []int{0, 6000, 80_000} {
		o := opts
		o.ResultChars = limit
		r := ResultFromTask(task, o)
		for name, got := range map[string]string{"content": contentText(r, true, true), "structured": structuredText(r)} {
			if n := runes(got); n > o.resultChars()+500 {
				t.Errorf("limit %d: %s has %d characters", limit, name, n)
			}
			if !strings.HasPrefix(strings.TrimPrefix(got, "completed\ncx_1\ntk_1\n\n"), whole[:100]) {
				t.Errorf("limit %d: %s does not begin with the head: %.200q", limit, name, got)
			}
			if !strings.Contains(got, whole[len(whole)-100:]) {
				t.Errorf("limit %d: %s does not have the tail", limit, name)
			}
			checkMarker(t, task, got, whole, o)
		}
		if got := pages(t, task, "a1", 0, o); got != whole {
			t.Errorf("limit %d: the pages are not the text", limit)
		}
	}
	if r := ResultFromTask(textTask(strings.Repeat("x", DefaultResultChars)), opts); strings.Contains(contentText(r, true, true), "left out") {
		t.Error("a text of exactly the limit was cut")
	}
}

var marker = regexp.MustCompile(`\[… (\d+) characters( of JSON)? left out(?:[^.]*)\. Call a2a_get_task with (\{.*?\})\]`)

// checkMarker follows the call of the marker: what stands before it and what
// the call reads are the whole text; the number is what the gap holds.
func checkMarker(t testing.TB, task *a2a.Task, got, whole string, o Options) {
	t.Helper()
	m := marker.FindStringSubmatchIndex(got)
	if m == nil {
		t.Fatalf("no marker in %.300q", got)
	}
	var call struct {
		TaskHandle, ArtifactID string
		Offset                 int
	}
	if err := json.Unmarshal([]byte(got[m[6]:m[7]]), &call); err != nil || call.TaskHandle != o.Task {
		t.Fatalf("the call %s: %v", got[m[6]:m[7]], err)
	}
	rest := pages(t, task, call.ArtifactID, call.Offset, o)
	if runes(rest) != runes(whole)-call.Offset || !strings.HasSuffix(whole, rest) {
		t.Errorf("the call reads something else: offset %d, %d characters", call.Offset, runes(rest))
	}
	head := strings.TrimSuffix(whole, rest)
	if before := strings.TrimSuffix(got[:m[0]], "\n"); !strings.HasSuffix(before, strings.TrimSuffix(head, "\n")) {
		t.Errorf("what stands before the marker is not the head: …%.100q", before[max(0, len(before)-100):])
	}
	left, err := strconv.Atoi(got[m[2]:m[3]])
	if err != nil {
		t.Fatal(err)
	}
	tail := rest[runeIndex(rest, left):]
	if !strings.Contains(got[m[1]:], tail) {
		t.Errorf("%d characters are not what is missing", left)
	}
}

// A huge artifact does not push out a short one, nor the last word.
func TestShortTextsSurvive(t *testing.T) {
	task := textTask(strings.Repeat("a", 100_000), "short one", strings.Repeat("b", 100_000))
	task.Status.Message = &a2a.Message{Role: a2a.RoleAgent, Parts: []a2a.Part{{Kind: a2a.PartText, Text: "last word"}}}
	r := ResultFromTask(task, opts)
	got := contentText(r, true, true)
	for _, want := range []string{"short one", "last word", `"artifactId":"a1"`, `"artifactId":"a3"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is lost", want)
		}
	}
	if n := runes(got); n > DefaultResultChars+500 {
		t.Errorf("%d characters", n)
	}
}

// JSON that is cut says that it is not JSON any more; data is left out, not
// broken.
func TestLongJSON(t *testing.T) {
	raw := json.RawMessage(`{"list":[` + strings.Repeat(`"0123456789",`, 5000) + `"end"]}`)
	task := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{
		{ArtifactID: "a1", Parts: []a2a.Part{{Kind: a2a.PartData, Data: raw}}},
	}}
	r := ResultFromTask(task, opts)
	if !json.Valid(r.Structured) {
		t.Fatal("structuredContent is broken")
	}
	var env map[string]json.RawMessage
	if err := json.Unmarshal(r.Structured, &env); err != nil {
		t.Fatal(err)
	}
	if env["data"] != nil || !strings.Contains(string(env["note"]), "over the limit") || !strings.Contains(string(env["text"]), "not valid JSON") {
		t.Errorf("data %.50s, note %s", env["data"], env["note"])
	}
	if got := pages(t, task, "a1", 0, opts); got != string(raw) {
		t.Error("the pages are not the JSON")
	}
	o := opts
	o.ResultChars = len(raw)
	r = ResultFromTask(task, o)
	if err := json.Unmarshal(r.Structured, &env); err != nil || string(env["data"]) != string(raw) {
		t.Error("data under the limit is not as the agent wrote it")
	}
}

// A declared output schema needs the data whole, whatever the text can hold.
func TestLongDataForASchema(t *testing.T) {
	task, o := dataTask(64 << 10)
	o.ResultChars, o.Structured = 1000, StructuredData
	r := ResultFromTask(task, o)
	if string(r.Structured) != string(task.Artifacts[0].Parts[0].Data) {
		t.Errorf("structuredContent has %d bytes", len(r.Structured))
	}
	if n := runes(contentText(r, true, true)); n > 1500 {
		t.Errorf("the text has %d characters", n)
	}
	task.Artifacts[0].Parts = append(task.Artifacts[0].Parts, task.Artifacts[0].Parts[0])
	if r := ResultFromTask(task, o); r.Structured != nil {
		t.Error("one of two data parts stands alone")
	}
}

// A direct message cannot be read again, so more of it is kept.
func TestLongMessage(t *testing.T) {
	o := Options{Agent: "x", ResultChars: 1000}
	text := strings.Repeat("word ", 700)
	r := ResultFromMessage(&a2a.Message{Parts: []a2a.Part{{Kind: a2a.PartText, Text: text}}}, o)
	if got := contentText(r, true, true); !strings.HasPrefix(got, text) {
		t.Error("cut although nothing can read the rest")
	}
	r = ResultFromMessage(&a2a.Message{Parts: []a2a.Part{{Kind: a2a.PartText, Text: text + text}}}, o)
	got := contentText(r, true, true)
	if !strings.Contains(got, "left out]") || strings.Contains(got, "Call") || runes(got) > 4100 {
		t.Errorf("%d characters, %q", runes(got), got[2000:2200])
	}
}

// Image bytes are no text, however many.
func TestImagesDoNotCount(t *testing.T) {
	img := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + strings.Repeat("x", 100_000)))
	task := textTask("see the picture")
	task.Artifacts[0].Parts = append(task.Artifacts[0].Parts, a2a.Part{Kind: a2a.PartRaw, Base64: img, MediaType: "image/png"})
	r := ResultFromTask(task, opts)
	got := contentText(r, true, true)
	if !strings.Contains(got, img) || strings.Contains(got, "left out") {
		t.Error("the image was counted or cut")
	}
}

func TestVeryManyParts(t *testing.T) {
	for name, parts := range map[string]func(i int) a2a.Part{
		"texts": func(i int) a2a.Part { return a2a.Part{Kind: a2a.PartText, Text: "t" + strconv.Itoa(i)} },
		"links": func(i int) a2a.Part {
			return a2a.Part{Kind: a2a.PartURL, URL: "https://a.test/" + strings.Repeat("p", 500) + strconv.Itoa(i)}
		},
		"data": func(i int) a2a.Part {
			return a2a.Part{Kind: a2a.PartData, Data: json.RawMessage(strconv.Itoa(i))}
		},
		"unreadable": func(int) a2a.Part { return a2a.Part{Kind: a2a.PartUnknown, Fault: "odd"} },
	} {
		task := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{{ArtifactID: "a1"}}}
		for i := range 8_000 {
			task.Artifacts[0].Parts = append(task.Artifacts[0].Parts, parts(i))
		}
		r := ResultFromTask(task, opts)
		if len(r.Content) > 2*maxPieces+10 {
			t.Errorf("%s: %d blocks", name, len(r.Content))
		}
		got := contentText(r, true, false)
		if n := len(got); n > 3*DefaultResultChars {
			t.Errorf("%s: %d bytes of text", name, n)
		}
		if !strings.Contains(got, "left out") {
			t.Errorf("%s: nothing says that parts are missing", name)
		}
	}
	many := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}}
	for i := range 5000 {
		many.Artifacts = append(many.Artifacts, a2a.Artifact{ArtifactID: strconv.Itoa(i), Parts: []a2a.Part{{Kind: a2a.PartText, Text: strings.Repeat("y", 900)}}})
	}
	r := ResultFromTask(many, opts)
	if n := len(AppendResult(nil, r, Rev20260728, nil)); n > 300_000 {
		t.Errorf("many artifacts: %d bytes", n)
	}
}

func TestPageErrors(t *testing.T) {
	task := textTask("0123456789", "x")
	for _, c := range []struct {
		id     string
		offset int
		want   string
	}{
		{"a9", 0, `artifactId: "a9" is not an artifact of this task, which has "a1", "a2"`},
		{"a1", -1, `offset: -1 is outside the text of artifact "a1", which has 10 characters`},
		{"a1", 11, `offset: 11 is outside the text of artifact "a1", which has 10 characters`},
		{StatusArtifactID, 0, `artifactId: "@status" is not an artifact of this task, which has "a1", "a2"`},
	} {
		if _, err := ResultFromPage(task, c.id, c.offset, opts); err == nil || err.Error() != c.want {
			t.Errorf("%s %d: %v", c.id, c.offset, err)
		}
	}
	if _, err := ResultFromPage(&a2a.Task{}, "a1", 0, opts); err == nil || !strings.HasSuffix(err.Error(), "which has none") {
		t.Errorf("%v", err)
	}
	r, err := ResultFromPage(task, "a1", 10, opts)
	if err != nil || !strings.Contains(contentText(r, true, true), "Characters 10 to 10 of 10. This is the end.") {
		t.Errorf("the empty page at the end: %v", err)
	}
}

// What a page does not hold is named.
func TestPageNamesWhatIsNoText(t *testing.T) {
	task := textTask("words")
	task.Artifacts[0].Parts = append(task.Artifacts[0].Parts,
		a2a.Part{Kind: a2a.PartURL, URL: "https://a.test/r.pdf"},
		a2a.Part{Kind: a2a.PartRaw, Base64: "JVBERg==", MediaType: "application/pdf", Filename: "r.pdf"})
	r, err := ResultFromPage(task, "a1", 0, opts)
	if err != nil {
		t.Fatal(err)
	}
	got := contentText(r, true, true)
	for _, want := range []string{"words\n", "https://a.test/r.pdf", "r.pdf (application/pdf, 4 bytes)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// Whatever an answer is made of: each cut names a call that reads on exactly
// where the text stops, and pages make the whole.
func TestCutsAndPagesAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"word ", "naïve\n", "日本 ", "👩‍🔬\n", "x", "\t", "[1,2]"}
	for round := range 40 {
		task := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}}
		for a := range 1 + rnd.IntN(4) {
			art := a2a.Artifact{ArtifactID: "a" + strconv.Itoa(a)}
			for range 1 + rnd.IntN(5) {
				var b strings.Builder
				for range rnd.IntN(2000) {
					b.WriteString(words[rnd.IntN(len(words))])
				}
				p := a2a.Part{Kind: a2a.PartText, Text: b.String()}
				switch rnd.IntN(6) {
				case 0:
					p = a2a.Part{Kind: a2a.PartData, Data: AppendString(nil, b.String())}
				case 1:
					p = a2a.Part{Kind: a2a.PartURL, URL: "https://a.test/x"}
				case 2:
					p = a2a.Part{Kind: a2a.PartRaw, MediaType: "text/csv", Base64: base64.StdEncoding.EncodeToString([]byte(b.String()))}
				}
				art.Parts = append(art.Parts, p)
			}
			task.Artifacts = append(task.Artifacts, art)
		}
		o := opts
		o.ResultChars = 4000 + rnd.IntN(8000)
		r := ResultFromTask(task, o)
		got := contentText(r, true, true)
		if n := runes(got); n > o.ResultChars+800 {
			t.Fatalf("round %d: %d characters at a limit of %d", round, n, o.ResultChars)
		}
		for _, art := range task.Artifacts {
			whole := artifactText(&art)
			if p := pages(t, task, art.ArtifactID, 0, o); p != whole {
				t.Fatalf("round %d: pages of %s differ", round, art.ArtifactID)
			}
		}
		for _, m := range marker.FindAllStringSubmatch(got, -1) {
			var call struct {
				ArtifactID string
				Offset     int
			}
			if err := json.Unmarshal([]byte(m[3]), &call); err != nil {
				t.Fatal(err)
			}
			for _, art := range task.Artifacts {
				if art.ArtifactID != call.ArtifactID {
					continue
				}
				whole := artifactText(&art)
				head := whole[:runeIndex(whole, call.Offset)]
				last := head[strings.LastIndexByte(strings.TrimSuffix(head, "\n"), '\n')+1:]
				if !strings.Contains(got, strings.TrimSuffix(last, "\n")+"\n[… ") && call.Offset > 0 && last != "" {
					t.Fatalf("round %d: the text before the marker is not what stands before offset %d: %q", round, call.Offset, last)
				}
			}
		}
	}
}

func artifactText(a *a2a.Artifact) string {
	var texts []string
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Kind {
		case a2a.PartText:
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		case a2a.PartData:
			texts = append(texts, string(p.Data))
		case a2a.PartRaw:
			s, _ := rawText(p.Base64)
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// A long status can be paged too, where it is shown whole.
func TestStatusPages(t *testing.T) {
	long := strings.Repeat("status words\n", 10_000)
	task := &a2a.Task{Status: a2a.Status{State: a2a.StateFailed, Message: &a2a.Message{Role: a2a.RoleAgent, Parts: []a2a.Part{{Kind: a2a.PartText, Text: long}}}}}
	got := contentText(ResultFromTask(task, opts), true, true)
	checkMarker(t, task, got, long, opts)
}

func TestHistoryLimits(t *testing.T) {
	task := textTask("answer")
	for i := range 100 {
		task.History = append(task.History, a2a.Message{Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: fmt.Sprintf("turn %03d %s", i, strings.Repeat("h", 500))}}})
	}
	o := opts
	o.HistoryLength = AllHistory
	r := ResultFromTask(task, o)
	got := contentText(r, true, true)
	if !strings.Contains(got, "turn 099") || strings.Contains(got, "turn 000") || !strings.Contains(got, "earlier turns of the history left out") {
		t.Errorf("the newest turns are not what is kept: %.200q", got)
	}
	if n := strings.Count(got, "turn "); runes(got) > DefaultResultChars/2 || n < 20 {
		t.Errorf("%d turns in %d characters", n, runes(got))
	}
	o.HistoryLength = 1
	if got := contentText(ResultFromTask(task, o), true, true); strings.Count(got, "turn ") != 1 || !strings.Contains(got, "turn 099") {
		t.Errorf("historyLength 1: %.300q", got)
	}
}

func TestRuneIndex(t *testing.T) {
	s := "aé日👩x"
	for n := -1; n <= 7; n++ {
		i := runeIndex(s, n)
		if want := max(0, min(n, 5)); runes(s[:i]) != want || !utf8.ValidString(s[:i]) {
			t.Errorf("%d: %d", n, i)
		}
	}
}
