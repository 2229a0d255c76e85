package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"a2agate/config"
	"a2agate/fixtures"
	"a2agate/server"
)

// quick makes open pages ask often, so that tests do not wait.
func quick(p *statusPage, _ *server.Options) { p.every = 100 * time.Millisecond }

const isLive = `document.getElementById('connection')?.textContent === 'Live'`

// isOver: the call of the form is over.
const isOver = `document.getElementById('stop').hidden && !document.getElementById('outcome').hidden`

func TestStatusPageInChromium(t *testing.T) {
	t.Parallel()
	chrome := newBrowser(t)
	agent := newRunningAgent(t, fixtures.Options{})
	w := newStatusWorld(t, configOf(t, "demo=http://"+agent.addr), quick)

	t.Run("loads", func(t *testing.T) {
		p := open(t, chrome, w.base+"/")
		p.wait(isLive)
		for selector, want := range map[string]string{
			"h1": "a2agate", "#endpoint": w.base + "/mcp", "#agent-demo .state": "ready", "#agent-demo th": "Demo agent",
			"#summary": "1 of 1 agent ready", "#tools-live": "a2a_send_message", "#connect-live": "Claude Code",
		} {
			if got := p.text(selector); !strings.Contains(got, want) {
				t.Errorf("%s is %q, want %q", selector, got, want)
			}
		}
		if got := eval[string](p, "document.title"); got != "a2agate: 1 of 1 agent ready" {
			t.Errorf("title %q", got)
		}
	})
	t.Run("shows changes as they come", func(t *testing.T) { changesAsTheyCome(t, chrome, w, agent) })
	t.Run("calls a tool", func(t *testing.T) { callsATool(t, chrome, w) })
	t.Run("takes what is typed seriously", func(t *testing.T) { badInput(t, chrome, w) })
	t.Run("shows every kind of content", func(t *testing.T) { everyContent(t, chrome, w) })
	t.Run("copies", func(t *testing.T) { copies(t, chrome, w) })
	t.Run("works by keyboard alone", func(t *testing.T) { keyboardAlone(t, chrome, w) })
	t.Run("rests while nobody looks", func(t *testing.T) { restsWhileHidden(t, chrome, w) })
	t.Run("fits every screen", func(t *testing.T) { fitsEveryScreen(t, chrome, w) })
	t.Run("lets no agent write on it", func(t *testing.T) { hostileAgents(t, chrome) })
	t.Run("asks who is there", func(t *testing.T) { signsIn(t, chrome) })
	t.Run("says that the gateway is gone", func(t *testing.T) { gatewayGone(t, chrome) })
	t.Run("sends the headers that a schema asks for", func(t *testing.T) {
		cfg := configOf(t, "demo=http://"+agent.addr)
		cfg.ParamHeaders = true
		p := open(t, chrome, newStatusWorld(t, cfg, quick).base+"/")
		p.wait(isLive)
		p.do(chromedp.SendKeys("#argument-text", "echo with headers"), chromedp.Click("#run"))
		p.wait(isOver + ` && document.getElementById('answer').textContent.includes('with headers')`)
	})
	t.Run("reads without a script", func(t *testing.T) {
		p := open(t, chrome, w.base+"/", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
			return err
		}))
		body, err := chromedp.Run(p.ctx, chromedp.Text("body"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(body, "The form needs JavaScript") || !strings.Contains(body, "ready") || strings.Contains(body, "Call the tool") {
			t.Errorf("without a script the page says:\n%s", body)
		}
	})
}

// changesAsTheyCome: an agent goes down and returns, on a page that is not
// loaded anew and loses nothing of what a person has done to it.
func changesAsTheyCome(t *testing.T, chrome context.Context, w *statusWorld, agent *runningAgent) {
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	p.do(chromedp.Click("#more-demo summary"), chromedp.SendKeys("#argument-text", "half a sentence"))
	eval[bool](p, "window.same = true")

	agent.stop()
	w.call("", "a2a_send_message", `{"agent":"demo","text":"echo x"}`) // how the gateway notices
	p.wait(`document.querySelector('#agent-demo .state').textContent === 'down'`)
	if got := p.text("#announce"); !strings.HasPrefix(got, "demo is down: ") {
		t.Errorf("a screen reader hears %q", got)
	}
	if got := p.text("#summary"); !strings.Contains(got, "0 of 1 agent ready") {
		t.Errorf("the summary is %q", got)
	}
	p.wait(`document.querySelector('#calls-body tr .state.bad')?.textContent === 'tool error'`)
	agent.start()
	p.wait(`document.querySelector('#agent-demo .state').textContent === 'ready'`)
	p.wait(`document.getElementById('announce').textContent === 'demo is ready'`)
	if !eval[bool](p, `window.same && document.getElementById('more-demo').open && document.getElementById('argument-text').value === 'half a sentence' && document.activeElement.id === 'argument-text'`) {
		t.Error("the page lost what was folded open, typed or focused")
	}
}

func callsATool(t *testing.T, chrome context.Context, w *statusWorld) {
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	if got := eval[string](p, "document.getElementById('tool').value"); got != "a2a_send_message" {
		t.Errorf("the form begins with %s", got)
	}
	p.latch("progressed", `document.querySelectorAll('#progress li').length >= 2 && !document.getElementById('stop').hidden`) // before the answer
	p.do(chromedp.SendKeys("#argument-text", "progress 3 0.7"), chromedp.Click("#run"))
	p.wait("window.progressed")
	p.wait(isOver)
	if got := p.text("#outcome-state"); !strings.HasPrefix(got, "Answered after ") {
		t.Errorf("%q", got)
	}
	if got := p.text("#answer"); !strings.Contains(got, "Status: completed") || !strings.Contains(got, "Structured content") {
		t.Errorf("the answer is %q", got)
	}
	p.wait(`document.querySelector('#calls-body tr td:nth-child(2)').textContent.includes('a2a_send_message')`)

	// A question, and its answer in the same conversation.
	p.do(chromedp.SetValue("#argument-text", "ask colour"), chromedp.Click("#run"))
	p.wait(isOver + ` && !document.getElementById('continue').hidden`)
	p.do(chromedp.Click("#continue"), chromedp.SendKeys("#argument-text", "green"), chromedp.Click("#run"))
	p.wait(isOver + ` && document.getElementById('answer').textContent.includes('green')`)

	// A call that is stopped is cancelled: its task ends.
	p.do(chromedp.Evaluate[chromedp.Void](`for (const c of document.querySelectorAll('#fields [name$=Handle]')) c.value = ''`),
		chromedp.SetValue("#argument-text", "slow 3600"), chromedp.Click("#run"), chromedp.Click("#stop"))
	p.wait(isOver)
	if got := p.text("#outcome-state"); !strings.HasPrefix(got, "Stopped after ") {
		t.Errorf("%q", got)
	}

	// An error of the tool.
	p.do(chromedp.SetValue("#argument-text", "fail badly"), chromedp.Click("#run"))
	p.wait(isOver + ` && document.querySelector('#outcome-state .bad')?.textContent.startsWith('The tool reported an error')`)
}

func badInput(t *testing.T, chrome context.Context, w *statusWorld) {
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	p.do(chromedp.SetValue("#argument-text", "echo x"),
		chromedp.Evaluate[chromedp.Void](`document.querySelector('#fields [name=data]').value = '{"a":'`), chromedp.Click("#run"))
	p.wait(`document.activeElement.name === 'data' && document.activeElement.getAttribute('aria-invalid') === 'true' && document.activeElement.closest('details').open`)
	if got := eval[string](p, `document.getElementById(document.activeElement.id + '-trouble').innerText`); !strings.HasPrefix(got, "this is not JSON") {
		t.Errorf("%q", got)
	}
	if !eval[bool](p, `document.getElementById('outcome').hidden`) {
		t.Error("it was called all the same")
	}
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#fields [name=data]').value = '[1,{"b":null}]';
		document.querySelector('#fields [name=timeoutSeconds]').value = '1.5'`), chromedp.Click("#run"))
	p.wait(`document.activeElement.name === 'timeoutSeconds'`)
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.value = '30'; document.querySelector('#argument-text').value = 'received'`), chromedp.Click("#run"))
	p.wait(isOver)
	if got := p.text("#answer"); !strings.Contains(got, "data") || !strings.HasPrefix(p.text("#outcome-state"), "Answered") {
		t.Errorf("%q %q", p.text("#outcome-state"), got)
	}
	// What is needed is said, and kept from tool to tool.
	p.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('tool').value = 'a2a_get_task'; document.getElementById('tool').dispatchEvent(new Event('change'))`), chromedp.Click("#run"))
	p.wait(`document.activeElement.name === 'taskHandle'`)
	if got := p.text("#fields .trouble:not(:empty)"); got != "taskHandle is needed" {
		t.Errorf("%q", got)
	}
}

// everyContent: whatever an agent answers is shown, and nothing of it runs.
func everyContent(t *testing.T, chrome context.Context, w *statusWorld) {
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	for command, want := range map[string]string{
		"image": "!!document.querySelector('#answer canvas')", "audio": "document.querySelector('#answer').innerText.includes('audio/')",
		"url":  "document.querySelector('#answer a[target=_blank]').rel.includes('noopener')",
		"csv":  "document.querySelector('#answer').innerText.includes(',')",
		"pdf":  "document.querySelector('#answer').innerText.includes('application/pdf')",
		"ansi": "document.querySelector('#answer pre').innerText.length > 0", "mixed": "!!document.querySelector('#answer canvas')",
		"echo <img src=x onerror=alert(1)><script>alert(2)</script>": "document.querySelector('#answer pre').innerText.includes('<img src=x onerror=alert(1)>')",
	} {
		p.do(chromedp.SetValue("#argument-text", command), chromedp.Click("#run"))
		p.wait(isOver + " && (" + want + ")")
	}
	if n := eval[int](p, "document.scripts.length + document.images.length"); n != 1 {
		t.Errorf("%d scripts and images", n)
	}
}

func copies(t *testing.T, chrome context.Context, w *statusWorld) {
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, browser.SetPermission, browser.SetPermissionParams{
				Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, Origin: w.base,
			})
			return err
		}))
	}
	p.latch("copied", `document.querySelector('[data-copy=endpoint]').textContent.startsWith('Copied')`)
	p.do(chromedp.Click("[data-copy=endpoint]"))
	p.wait("window.copied")
	if got := eval[string](p, "navigator.clipboard.readText()"); got != w.base+"/mcp" {
		t.Errorf("the clipboard has %q", got)
	}
	blocks := eval[[]string](p, `[...document.querySelectorAll('#connect-live [data-copy]')].map((b) => b.dataset.copy)`)
	if len(blocks) < 8 {
		t.Fatalf("only %d blocks: %v", len(blocks), blocks)
	}
	for _, id := range blocks {
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.getElementById(%q).closest('details').open = true`, id)), chromedp.Click("[data-copy="+id+"]"))
		p.wait(fmt.Sprintf(`document.getElementById('announce').textContent === 'Copied' && navigator.clipboard.readText().then((t) => t === document.getElementById(%q).textContent)`, id))
		if got := eval[string](p, "navigator.clipboard.readText()"); !strings.Contains(got, w.base+"/mcp") {
			t.Errorf("%s copies %q", id, got)
		}
	}
	// Without a clipboard, as on a plain http origin, the text is selected.
	p.do(chromedp.Evaluate[chromedp.Void](`Object.defineProperty(navigator, 'clipboard', { value: undefined }); document.execCommand = () => false`), chromedp.Click("[data-copy=endpoint]"))
	p.wait(`getSelection().toString() === document.getElementById('endpoint').textContent`)
}

// keyboardAlone: everything can be reached, has a name and shows its focus.
func keyboardAlone(t *testing.T, chrome context.Context, w *statusWorld) {
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	p.do(chromedp.KeyEvent(kb.Tab))
	if got := p.text(":focus"); got != "Skip to the agents" {
		t.Fatalf("the first stop is %q", got)
	}
	var stops []string
	const stop = `(() => {
		const e = document.activeElement;
		const style = getComputedStyle(e);
		const name = e.ariaLabel || e.labels?.[0]?.textContent || e.textContent || '';
		const box = e.getBoundingClientRect();
		return { key: e.id || e.dataset.copy || e.getAttribute('href') || e.parentElement.id, tag: e.tagName, name: name.trim(),
			ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0, seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight };
	})()`
	for range 100 {
		at := eval[struct {
			Key, Tag, Name string
			Ring, Seen     bool
		}](p, stop)
		if at.Tag == "BODY" {
			break
		}
		if at.Name == "" || !at.Ring || !at.Seen {
			t.Errorf("a stop without a name, a ring or on no screen: %+v", at)
		}
		stops = append(stops, at.Key)
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	for _, want := range []string{"endpoint", "#try", "more-demo", "tool", "argument-text", "run", "tool-a2a_discover", "client-claude", "api/status"} {
		if !slices.Contains(stops, want) {
			t.Errorf("Tab never stops at %s: %v", want, stops)
		}
	}
	// A whole call, by keys.
	p.do(chromedp.Focus("#argument-text"), chromedp.KeyEvent("echo by hand"), chromedp.KeyEvent(kb.Tab))
	for p.do(); eval[string](p, "document.activeElement.id") != "run"; {
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait(isOver + ` && document.getElementById('answer').textContent.includes('by hand')`)
	if got := eval[string](p, "document.activeElement.id"); got != "run" {
		t.Errorf("after the call the focus is on %q", got)
	}
}

// restsWhileHidden: a page in the background asks for nothing.
func restsWhileHidden(t *testing.T, chrome context.Context, w *statusWorld) {
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	eval[bool](p, `(() => {
		window.asked = 0;
		const real = window.fetch;
		window.fetch = (...a) => { window.asked++; return real(...a); };
		return true;
	})()`)
	p.wait("window.asked >= 2")
	asked := eval[int](p, `(async () => {
		Object.defineProperty(document, 'hidden', { value: true, configurable: true });
		document.dispatchEvent(new Event('visibilitychange'));
		await new Promise((next) => setTimeout(next, 150)); // a look under way ends
		window.asked = 0;
		await new Promise((next) => setTimeout(next, 600));
		return window.asked;
	})()`)
	if asked != 0 {
		t.Errorf("a hidden page asked %d times", asked)
	}
	eval[bool](p, `delete document.hidden && document.dispatchEvent(new Event('visibilitychange'))`)
	p.wait("window.asked >= 2")
}

// fitsEveryScreen: from 320 px on nothing is wider than the screen, with all
// folds open; both colour schemes differ.
func fitsEveryScreen(t *testing.T, chrome context.Context, w *statusWorld) {
	p := open(t, chrome, w.base+"/", chromedp.EmulateViewport(360, 740))
	p.wait(isLive)
	p.do(chromedp.SendKeys("#argument-text", "mixed"), chromedp.Click("#run"))
	p.wait(isOver)
	for _, width := range []int64{320, 360, 768, 1100} {
		p.do(chromedp.EmulateViewport(width, 740), chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll('details')) d.open = true`))
		wide := eval[[]string](p, `[...document.querySelectorAll('body *')].filter((e) => !e.closest('pre *, .unseen, thead') && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.tagName + '#' + e.id + '.' + e.className)`)
		if got := eval[int64](p, "document.documentElement.scrollWidth"); got > width || len(wide) > 0 {
			t.Errorf("on %d px the page is %d px wide: %v", width, got, wide)
		}
	}
	p.do(chromedp.EmulateViewport(360, 740))
	if got := eval[string](p, `getComputedStyle(document.querySelector('#calls-body td')).display`); got != "grid" {
		t.Errorf("on a narrow screen the cells of a table are %s", got)
	}
	if small := eval[[]string](p, `[...document.querySelectorAll('button, select, input, nav a, summary')].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML.slice(0, 80))`); len(small) > 0 {
		t.Errorf("too small for a finger: %v", small)
	}
	colours := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		colours[scheme] = eval[string](p, `getComputedStyle(document.body).backgroundColor + ' ' + getComputedStyle(document.body).color`)
	}
	if colours["light"] != "rgb(252, 252, 251) rgb(29, 32, 35)" || colours["dark"] != "rgb(22, 24, 27) rgb(229, 231, 234)" {
		t.Errorf("%v", colours)
	}
}

// hostileCard is a card that tries to be more than text.
const hostileCard = `{"protocolVersion":"1.0","name":"<script>alert(1)</script>","description":"</p><img src=x onerror=alert(2)>","version":"\"><svg onload=alert(3)>",
	"documentationUrl":"javascript:alert(4)","iconUrl":"https://tracker.example/x.png","defaultInputModes":["text"],"defaultOutputModes":["text"],"capabilities":{},
	"supportedInterfaces":[{"url":"http://%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
	"skills":[{"id":"<b onmouseover=alert(5)>x</b>","name":"</li><script src=//evil.example/x.js></script>","description":"\u202egnirts","tags":["<style>*{display:none}</style>"]}]}`

// hostileAgents: what a card says is text and nothing else, in the lists and in the form.
func hostileAgents(t *testing.T, chrome context.Context) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, hostileCard, r.Host)
	}))
	defer agent.Close()
	cfg := exposing(configOf(t, "bad="+agent.URL), "generic", "agents", "skills")
	w := newStatusWorld(t, cfg, quick)
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	if got := p.text("#agent-bad th"); !strings.Contains(got, "<script>alert(1)</script>") {
		t.Errorf("the name is shown as %q", got)
	}
	p.wait(`document.getElementById('tool').options.length === 6`) // its agent tool and its skill tool came with the card
	tools := eval[[]string](p, `[...document.getElementById('tool').options].map((o) => o.value)`)
	for _, tool := range tools {
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.getElementById('tool').value = %q; document.getElementById('tool').dispatchEvent(new Event('change'))`, tool)))
		if n := eval[int](p, `document.querySelectorAll('script, style, img, svg, iframe, [onerror], [onload], [onmouseover], a[href^="javascript:"]').length`); n != 1 {
			t.Errorf("with %s the page has %d elements of others", tool, n-1)
		}
	}
}

// signsIn: with authentication the page asks for a token, keeps to what its holder may
// see, and forgets it on signing out.
func signsIn(t *testing.T, chrome context.Context) {
	a := newRunningAgent(t, fixtures.Options{Name: "First agent"})
	b := newRunningAgent(t, fixtures.Options{Name: "Second agent"})
	cfg := configOf(t, "a=http://"+a.addr, "b=http://"+b.addr)
	cfg.Auth.Tokens = []config.Token{{Name: "a", SHA256: sha256.Sum256([]byte("a"))}}
	w := newStatusWorld(t, cfg, func(p *statusPage, o *server.Options) {
		quick(p, o)
		o.Authenticate = byToken
	})
	p := open(t, chrome, w.base+"/")
	p.wait(`document.activeElement.id === 'token'`)
	p.do(chromedp.SendKeys("#token", "wrong"+kb.Enter))
	p.wait(`document.getElementById('token-trouble').innerText === 'this gateway does not know the token'`)
	retype := chromedp.Evaluate[chromedp.Void](`document.getElementById('token').value = ''`)
	p.do(retype, chromedp.SendKeys("#token", "narrow"+kb.Enter))
	p.wait(`document.getElementById('token-trouble').innerText === 'the token lacks a scope'`)
	p.do(retype, chromedp.SendKeys("#token", "a"+kb.Enter))
	p.wait(isLive)
	if got := p.text("body"); !strings.Contains(got, "First agent") || strings.Contains(got, "Second agent") || !strings.Contains(p.text("#summary"), "you are a") {
		t.Errorf("a sees:\n%s", got)
	}
	p.do(chromedp.SendKeys("#argument-text", "echo for my eyes"), chromedp.Click("#run"))
	p.wait(isOver + ` && document.getElementById('answer').textContent.includes('for my eyes')`)
	p.wait(`document.querySelectorAll('#calls-body tr').length === 1`)

	p.do(chromedp.Navigate(w.base + "/")) // the tab knows the token
	p.wait(isLive + ` && document.querySelectorAll('#calls-body tr').length === 1`)
	p.leave(chromedp.Click("#signout"))
	p.wait(`document.activeElement?.id === 'token' && sessionStorage.length === 0`)
	for _, trouble := range p.taken() { // the browser reports each refusal
		if !strings.Contains(trouble, "status of 40") {
			t.Errorf("the page: %s", trouble)
		}
	}
}

// gatewayGone: a gateway that is gone is said to be gone, and found again.
func gatewayGone(t *testing.T, chrome context.Context) {
	agent := newRunningAgent(t, fixtures.Options{})
	var gone sync.Map
	w := newStatusWorld(t, configOf(t, "demo=http://"+agent.addr), func(p *statusPage, o *server.Options) {
		quick(p, o)
		o.Authenticate = func(*http.Request) (server.Identity, *server.Denied) {
			if _, ok := gone.Load("gone"); ok {
				return server.Identity{}, &server.Denied{Status: http.StatusServiceUnavailable, Reason: "the store is down"}
			}
			return server.Identity{Principal: server.Local}, nil
		}
	})
	p := open(t, chrome, w.base+"/")
	p.wait(isLive)
	gone.Store("gone", true)
	p.wait(`document.querySelector('#connection.bad')?.textContent === 'Not connected: the store is down'`)
	gone.Delete("gone")
	eval[bool](p, `document.dispatchEvent(new Event('visibilitychange'))`) // looks at once
	p.wait(isLive)
	for _, trouble := range p.taken() {
		if !strings.Contains(trouble, "503") {
			t.Errorf("the page: %s", trouble)
		}
	}
}

// screenshot is part of the documentation; -update makes it anew.
const screenshot = "../../docs/status.png"

func TestStatusScreenshot(t *testing.T) {
	t.Parallel()
	if !*update {
		data, err := os.ReadFile(screenshot)
		if err != nil {
			t.Fatalf("%v; go test ./cmd/a2agate -run TestStatusScreenshot -update makes it", err)
		}
		shot, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil || shot.Width < 1000 || shot.Height < 1000 || len(data) > 1<<20 {
			t.Errorf("%d bytes, %+v: %v", len(data), shot, err)
		}
		return
	}
	agent := newRunningAgent(t, fixtures.Options{})
	cfg := configOf(t, "demo=http://"+agent.addr)
	cfg.Listen = "127.0.0.1:8931"
	w := newStatusWorld(t, cfg, nil)
	chrome := newBrowser(t)
	for _, text := range []string{"echo hello", "slow 600", "fail for once", "image"} {
		arguments, err := json.Marshal(map[string]any{"text": text, "blocking": !strings.HasPrefix(text, "slow")})
		if err != nil {
			t.Fatal(err)
		}
		w.call("", "a2a_send_message", string(arguments))
	}
	p := open(t, chrome, w.base+"/", chromedp.EmulateViewport(1040, 1560, chromedp.EmulateScale(1.5)))
	p.wait(isLive)
	p.do(chromedp.SendKeys("#argument-text", "progress 3 1"), chromedp.Click("#run"))
	p.wait(isOver)
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); scrollTo(0, 0)`))
	p.wait(`document.querySelectorAll('#calls-body tr').length === 5 && document.querySelectorAll('#tasks-body tr').length >= 1`)
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(screenshot, shot, 0o644); err != nil {
		t.Fatal(err)
	}
}
