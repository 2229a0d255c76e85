package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// tokenEndpoint is a fake token endpoint behind http.RoundTripper, so that it
// lives inside a synctest bubble. It numbers the tokens it gives.
type tokenEndpoint struct {
	expiresIn string        // the JSON of expires_in, "" leaves it out
	delay     time.Duration // before it answers
	fail      atomic.Bool
	calls     atomic.Int32
	style     string // "header" or "params": refuses the other; "" takes both

	mu   sync.Mutex
	last url.Values
	user string
}

func (e *tokenEndpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	n := e.calls.Add(1)
	if e.delay > 0 {
		select {
		case <-time.After(e.delay):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	body, _ := io.ReadAll(req.Body)
	form, _ := url.ParseQuery(string(body))
	user, _, basic := req.BasicAuth()
	e.mu.Lock()
	e.last, e.user = form, user
	e.mu.Unlock()
	answer := func(status int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
	if e.fail.Load() {
		return answer(500, `{}`)
	}
	if (e.style == "header" && !basic) || (e.style == "params" && (basic || form.Get("client_secret") == "")) {
		return answer(401, `{"error":"invalid_client","error_description":"secret cl13nt-s3cr3t is wrong"}`)
	}
	expires := ""
	if e.expiresIn != "" {
		expires = `,"expires_in":` + e.expiresIn
	}
	return answer(200, fmt.Sprintf(`{"access_token":"T%d","token_type":"bearer"%s}`, n, expires))
}

func (e *tokenEndpoint) spec() Spec {
	return Spec{Type: "oauth2", ClientID: "id", ClientSecret: NewSecret("cl13nt-s3cr3t"), AuthStyle: "header",
		TokenURL: "https://login.test/token", Scopes: []string{"a", "b"}, HTTP: &http.Client{Transport: e}}
}

func oauth(t *testing.T, spec Spec) *OAuth2 {
	t.Helper()
	o, err := NewOAuth2(spec)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// header authorizes a request under ctx and returns what it then carries.
func header(t *testing.T, ctx context.Context, a Authorizer) (string, error) {
	t.Helper()
	req := request(t, "https://agent.test/").WithContext(ctx)
	err := a.Authorize(req)
	return req.Header.Get("Authorization"), err
}

func wantHeader(t *testing.T, a Authorizer, want string) {
	t.Helper()
	got, err := header(t, t.Context(), a)
	if err != nil || got != want {
		t.Errorf("Authorization is %q (%v), want %q", got, err, want)
	}
}

func TestOAuth2OneFetchForHundredCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{expiresIn: "3600", delay: time.Second}
		o := oauth(t, e.spec())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { wantHeader(t, o, "Bearer T1") })
		}
		wg.Wait()
		if n := e.calls.Load(); n != 1 {
			t.Errorf("%d fetches", n)
		}
		if e.last.Get("scope") != "a b" || e.last.Get("grant_type") != "client_credentials" || e.user != "id" {
			t.Errorf("form is %v, user %q", e.last, e.user)
		}
	})
}

func TestOAuth2RefreshesInTime(t *testing.T) {
	tests := []struct {
		expiresIn string
		still     time.Duration // the first token serves until here
		renewed   time.Duration // and no longer here
	}{
		{"3600", 3539 * time.Second, 3541 * time.Second},
		{"65", 32 * time.Second, 33 * time.Second}, // half the lifetime
		{"10", 4 * time.Second, 6 * time.Second},
		{`"600"`, 539 * time.Second, 541 * time.Second}, // a string, as some send
	}
	for _, tt := range tests {
		t.Run(tt.expiresIn, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &tokenEndpoint{expiresIn: tt.expiresIn}
				o := oauth(t, e.spec())
				wantHeader(t, o, "Bearer T1")
				time.Sleep(tt.still)
				wantHeader(t, o, "Bearer T1")
				time.Sleep(tt.renewed - tt.still)
				wantHeader(t, o, "Bearer T2")
			})
		})
	}
}

func TestOAuth2WithoutExpiryLastsUntilRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{}
		o := oauth(t, e.spec())
		wantHeader(t, o, "Bearer T1")
		time.Sleep(1000 * time.Hour)
		wantHeader(t, o, "Bearer T1")
		if !o.Refresh(t.Context()) {
			t.Error("Refresh says that nothing can help")
		}
		wantHeader(t, o, "Bearer T2")
	})
}

// TestOAuth2OneRefreshForManyRefusals: fifty calls with the old token are
// refused at once; one new token is fetched, and late refusals do not throw it
// away.
func TestOAuth2OneRefreshForManyRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{expiresIn: "3600", delay: 100 * time.Millisecond}
		o := oauth(t, e.spec())
		wantHeader(t, o, "Bearer T1")
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(i*50) * time.Millisecond)
				if !o.Refresh(t.Context()) {
					t.Error("Refresh says that nothing can help")
				}
				wantHeader(t, o, "Bearer T2")
			})
		}
		wg.Wait()
		if n := e.calls.Load(); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		time.Sleep(time.Minute)
		o.Refresh(t.Context())
		wantHeader(t, o, "Bearer T3")
	})
}

func TestOAuth2FailingEndpointIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{expiresIn: "3600"}
		e.fail.Store(true)
		o := oauth(t, e.spec())
		for range 600 { // a minute of ten calls a second
			if _, err := header(t, t.Context(), o); err == nil || err.Error() != "token endpoint https://login.test/token answered 500" {
				t.Fatalf("error is %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := e.calls.Load(); n < 3 || n > 4 { // at 0, 5, 15, 35 s
			t.Errorf("%d fetches in a minute", n)
		}
		if o.Refresh(t.Context()) {
			t.Error("Refresh offers another try while the endpoint is known to fail")
		}
		e.fail.Store(false)
		time.Sleep(31 * time.Second)
		if _, err := header(t, t.Context(), o); err != nil {
			t.Errorf("does not recover: %v", err)
		}
	})
}

// TestOAuth2KeepsAValidTokenOverAFailedRenewal: inside the last minute of a
// token the endpoint fails; the token serves to its end.
func TestOAuth2KeepsAValidTokenOverAFailedRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{expiresIn: "3600"}
		o := oauth(t, e.spec())
		wantHeader(t, o, "Bearer T1")
		e.fail.Store(true)
		time.Sleep(3550 * time.Second)
		wantHeader(t, o, "Bearer T1")
		wantHeader(t, o, "Bearer T1")
		time.Sleep(51 * time.Second)
		if got, err := header(t, t.Context(), o); err == nil {
			t.Errorf("an ended token is still sent: %q", got)
		}
	})
}

func TestOAuth2WaitersCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{expiresIn: "3600", delay: 20 * time.Second}
		o := oauth(t, e.spec())
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { wantHeader(t, o, "Bearer T1") })
		synctest.Wait()
		for range 5 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := header(t, ctx, o); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error is %v", err)
				}
				if waited := time.Since(start); waited != time.Second {
					t.Errorf("waited %v", waited)
				}
			})
		}
		wg.Wait()
		if e.calls.Load() != 1 {
			t.Errorf("%d fetches", e.calls.Load())
		}
	})
}

// TestOAuth2CancelledFetcherHarmsNobody: the one who fetches goes away; that
// is not a failure of the endpoint, and the next in line fetches.
func TestOAuth2CancelledFetcherHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{expiresIn: "3600", delay: 5 * time.Second}
		o := oauth(t, e.spec())
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := header(t, ctx, o); !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() { wantHeader(t, o, "Bearer T2") })
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

func TestOAuth2HangingEndpointIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{delay: time.Hour}
		o := oauth(t, e.spec())
		start := time.Now()
		_, err := header(t, t.Context(), o)
		if err == nil || err.Error() != "token endpoint https://login.test/token did not answer in time" || time.Since(start) != fetchTimeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestOAuth2AuthStyles(t *testing.T) {
	tests := []struct {
		config, server string
		first, later   int32 // fetches for the first token, and for the second
	}{
		{"", "header", 1, 1},
		{"", "params", 2, 1}, // tried once, then remembered
		{"header", "header", 1, 1},
		{"params", "params", 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.config+"/"+tt.server, func(t *testing.T) {
			e := &tokenEndpoint{style: tt.server}
			spec := e.spec()
			spec.AuthStyle = tt.config
			o := oauth(t, spec)
			if _, err := header(t, t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if n := e.calls.Swap(0); n != tt.first {
				t.Errorf("%d requests for the first token, want %d", n, tt.first)
			}
			o.Refresh(t.Context())
			if _, err := header(t, t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if n := e.calls.Load(); n != tt.later {
				t.Errorf("%d requests for the second token, want %d", n, tt.later)
			}
		})
	}
}

// TestOAuth2ErrorsHoldNoSecret: the endpoint echoes the secret.
func TestOAuth2ErrorsHoldNoSecret(t *testing.T) {
	e := &tokenEndpoint{style: "params"}
	_, err := header(t, t.Context(), oauth(t, e.spec()))
	want := "token endpoint https://login.test/token answered 401 invalid_client: secret *** is wrong"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var coded *Error
	if !errors.As(err, &coded) || coded.Kind != KindOAuth2 {
		t.Errorf("error is a %T", err)
	}
}

// TestOAuth2SecretFollowsNoRedirect: a second origin behind a 307 sees nothing.
func TestOAuth2SecretFollowsNoRedirect(t *testing.T) {
	var reached atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	login := httptest.NewServer(http.RedirectHandler(other.URL+"/token", http.StatusTemporaryRedirect))
	defer login.Close()
	o := oauth(t, Spec{ClientID: "id", ClientSecret: NewSecret("s"), TokenURL: login.URL + "/token?tenant=x"})
	_, err := header(t, t.Context(), o)
	want := "token endpoint " + login.URL + "/token answered 307: redirects are not followed with a client secret; configure the final tokenUrl"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if reached.Load() != 0 {
		t.Error("the token request reached the second origin")
	}
}

func TestOAuth2TokenURLFromCard(t *testing.T) {
	e := &tokenEndpoint{}
	spec := e.spec()
	tests := []struct {
		configured     string
		want, fromCard bool
		refusal        string
	}{
		{"https://login.test/token", false, false, ""},
		{"", true, false, `oauth2 has no tokenUrl: set it, or set it to "fromCard" to use the one in the agent's card`},
		{"fromCard", true, true, "oauth2 takes its tokenUrl from the agent's card, and the card names none that can be used"},
	}
	for _, tt := range tests {
		spec.TokenURL = tt.configured
		o := oauth(t, spec)
		if want, fromCard := o.WantsTokenURL(); want != tt.want || fromCard != tt.fromCard {
			t.Errorf("%q: wants %v, fromCard %v", tt.configured, want, fromCard)
		}
		if _, err := header(t, t.Context(), o); (err == nil) != (tt.refusal == "") || (err != nil && err.Error() != tt.refusal) {
			t.Errorf("%q: %v", tt.configured, err)
		}
		placed := o.WithTokenURL("https://card.test/token", nil).(*OAuth2)
		if changed := placed.spec.TokenURL == "https://card.test/token"; changed != tt.want {
			t.Errorf("%q: card's endpoint used: %v", tt.configured, changed)
		}
		if o.WithTokenURL("file:///etc/passwd", nil) != Authorizer(o) {
			t.Errorf("%q: took a file as an endpoint", tt.configured)
		}
	}
}

func TestOAuth2UnreachableEndpoint(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	gone := server.URL
	server.Close()
	o := oauth(t, Spec{ClientID: "id", ClientSecret: NewSecret("s"), TokenURL: gone + "/t"})
	if _, err := header(t, t.Context(), o); err == nil || err.Error() != "token endpoint "+gone+"/t cannot be reached" {
		t.Errorf("error is %v", err)
	}
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	defer html.Close()
	o = oauth(t, Spec{ClientID: "id", ClientSecret: NewSecret("s"), TokenURL: html.URL})
	if _, err := header(t, t.Context(), o); err == nil || err.Error() != "token endpoint "+html.URL+" answered with something that is not a token" {
		t.Errorf("error is %v", err)
	}
}
