package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium is Debian's; .ci/chromium installs it.
const chromium = "/usr/bin/chromium"

// patience is how long a page has to come to what is waited for.
const patience = 40 * time.Second

// newBrowser starts Chromium with a profile of its own.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	if _, err := os.Stat(chromium); err != nil {
		t.Skipf("no %s; .ci/chromium installs it", chromium)
	}
	profile, err := os.MkdirTemp("", "a2agate-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(chromium), chromedp.UserDataDir(profile), chromedp.WindowSize(1100, 900),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(patience),
	)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		closeBrowser()
		cancel()
		_ = os.RemoveAll(profile) // Chromium may still be writing to it
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return ctx
}

// tab is one page, and what it complained of.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string
}

// open opens an address in a new tab, which is closed with the test. Unless
// the test takes them away, troubles of the page fail it.
func open(t *testing.T, browser context.Context, url string, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	p := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		for _, trouble := range p.taken() {
			t.Errorf("the page: %s", trouble)
		}
	})
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	p.do(append(before, chromedp.Navigate(url))...)
	return p
}

func (p *tab) listen(ev any) {
	var trouble string
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		trouble = fmt.Sprintf("console.%s", ev.Type)
	case *runtime.EventExceptionThrown:
		trouble = "exception: " + ev.ExceptionDetails.Text
		if ev.ExceptionDetails.Exception != nil {
			trouble += " " + ev.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		trouble = fmt.Sprintf("%s: %s %s", ev.Entry.Level, ev.Entry.Text, ev.Entry.URL)
	case *page.EventJavascriptDialogOpening:
		trouble = "dialog: " + ev.Message
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.troubles = append(p.troubles, trouble)
}

// taken takes away the troubles so far.
func (p *tab) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.troubles
	p.troubles = nil
	return list
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// leave does what loads another page, and waits until that is loaded.
func (p *tab) leave(step chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, step); err != nil {
		p.t.Fatal(err)
	}
}

// eval is the value of an expression; a promise is waited for.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience+10*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true. It is not chromedp's own poll: that
// one needs eval, which the page's policy forbids.
func (p *tab) wait(expression string) {
	p.t.Helper()
	ok := eval[bool](p, fmt.Sprintf(`(async () => {
		for (const end = Date.now() + %d; Date.now() < end; await new Promise((next) => setTimeout(next, 20))) if (%s) return true;
		return false;
	})()`, patience.Milliseconds(), expression))
	if !ok {
		p.t.Fatalf("never true: %s\nthe page says:\n%s", expression, eval[string](p, "document.body.innerText"))
	}
}

// latch sets a property of the window once an expression has been true after
// any change of the page: what passes may have passed when a test looks.
func (p *tab) latch(name, expression string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`(() => {
		window.%[1]s = false;
		new MutationObserver(() => { window.%[1]s ||= %[2]s; }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
		return true;
	})()`, name, expression))
}

// text is what a person reads in the first element of a selector.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}
