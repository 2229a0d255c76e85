package credential

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestPlacements has the exact request of each kind (checklist 58). Every
// credential is put on twice, as a retry does, and must stand there once.
func TestPlacements(t *testing.T) {
	secret := NewSecret
	tests := []struct {
		name   string
		spec   Spec
		header http.Header
		url    string
	}{
		{"bearer", Spec{Type: "bearer", Token: secret("tok")}, http.Header{"Authorization": {"Bearer tok"}}, ""},
		{"basic", Spec{Type: "basic", Username: "me", Password: secret("p:w")}, http.Header{"Authorization": {"Basic bWU6cDp3"}}, ""},
		{"apikey default", Spec{Type: "apikey", Key: secret("k")}, http.Header{"X-Api-Key": {"k"}}, ""},
		{"apikey header", Spec{Type: "apikey", Key: secret("k"), Header: "X-Agent"}, http.Header{"X-Agent": {"k"}}, ""},
		{"apikey name alone", Spec{Type: "apikey", Key: secret("k"), Name: "X-Other"}, http.Header{"X-Other": {"k"}}, ""},
		{"apikey query", Spec{Type: "apikey", Key: secret("a b&c"), In: "query", Name: "api key"}, http.Header{}, "http://a.test/x?q=%2f&z&api+key=a+b%26c"},
		{"apikey cookie", Spec{Type: "apikey", Key: secret("k"), In: "cookie", Name: "sid"}, http.Header{"Cookie": {"theme=dark; sid=k"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			auth, err := FromConfig(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			req := request(t, "http://a.test/x?q=%2f&z")
			if tt.spec.In == "cookie" {
				req.Header.Set("Cookie", "theme=dark; sid=old")
			}
			shared := req.URL
			before := shared.String()
			for range 2 {
				if err := auth.Authorize(req); err != nil {
					t.Fatal(err)
				}
			}
			if shared.String() != before {
				t.Errorf("the shared URL changed to %s", shared)
			}
			want := tt.url
			if want == "" {
				want = before
			}
			if req.URL.String() != want {
				t.Errorf("URL is %s, want %s", req.URL, want)
			}
			if len(req.Header) != len(tt.header) {
				t.Errorf("headers are %v, want %v", req.Header, tt.header)
			}
			for name, values := range tt.header {
				if got := req.Header[name]; strings.Join(got, "|") != strings.Join(values, "|") {
					t.Errorf("%s is %q, want %q", name, got, values)
				}
			}
			if auth.Refresh(context.Background()) {
				t.Error("a fixed credential claims to get better")
			}
			if k, ok := auth.(interface{ Kind() Kind }); !ok || k.Kind() != tt.spec.Type {
				t.Errorf("kind does not say %s", tt.spec.Type)
			}
		})
	}
}

func TestWithPlacement(t *testing.T) {
	tests := []struct {
		name     string
		spec     Spec
		in, card string
		where    string
	}{
		{"card decides", Spec{Key: NewSecret("k")}, "query", "api_key", "query"},
		{"card says cookie", Spec{Key: NewSecret("k")}, "cookie", "sid", "Cookie"},
		{"card says header", Spec{Key: NewSecret("k")}, "header", "X-Card", "X-Card"},
		{"configuration wins", Spec{Key: NewSecret("k"), Header: "X-Mine"}, "query", "api_key", "X-Mine"},
		{"nonsense place", Spec{Key: NewSecret("k")}, "body", "api_key", "X-Api-Key"},
		{"no name", Spec{Key: NewSecret("k")}, "query", "", "X-Api-Key"},
		{"bad name", Spec{Key: NewSecret("k")}, "header", "a\r\nb", "X-Api-Key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Type = "apikey"
			auth, err := FromConfig(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			placed := auth.(*APIKey).WithPlacement(tt.in, tt.card)
			req := request(t, "http://a.test/")
			if err := placed.Authorize(req); err != nil {
				t.Fatal(err)
			}
			if tt.where == "query" {
				if req.URL.RawQuery != "api_key=k" || len(req.Header) != 0 {
					t.Errorf("URL %s, headers %v", req.URL, req.Header)
				}
			} else if len(req.Header) != 1 || req.Header.Get(tt.where) == "" {
				t.Errorf("headers are %v, want only %s", req.Header, tt.where)
			}
		})
	}
	key, _ := NewAPIKey(NewSecret("k"), "", "")
	first := key.WithPlacement("query", "a").(*APIKey)
	if second := first.WithPlacement("header", "X-B").(*APIKey); second.name != "X-B" {
		t.Errorf("a later card cannot place the key again: %s", second.name)
	}
}

// TestSpecErrors has the exact text for each mistake; none repeats a secret.
func TestSpecErrors(t *testing.T) {
	const hidden = "s3cr3t\n"
	tests := []struct {
		spec Spec
		want string
	}{
		{Spec{Type: "magic"}, `type "magic" is none of none, bearer, apikey, basic, oauth2, az_cli, mtls`},
		{Spec{Type: "bearer"}, `token is empty`},
		{Spec{Type: "bearer", Token: NewSecret(hidden)}, `token holds a character that an HTTP header cannot carry (a line break, or a blank at an end)`},
		{Spec{Type: "apikey"}, `key is empty`},
		{Spec{Type: "apikey", Key: NewSecret("k"), Header: "a b"}, `header "a b" is not the name of an HTTP header`},
		{Spec{Type: "apikey", Key: NewSecret("k"), In: "body", Name: "x"}, `in "body" is none of header, query, cookie`},
		{Spec{Type: "apikey", Key: NewSecret("k"), In: "query"}, `name is missing: a key in the query needs the parameter's name`},
		{Spec{Type: "apikey", Key: NewSecret("a;b"), In: "cookie", Name: "x"}, `key holds a character that a cookie cannot carry`},
		{Spec{Type: "apikey", Key: NewSecret("k"), In: "cookie"}, `name "" is not the name of a cookie`},
		{Spec{Type: "apikey", Key: NewSecret("k"), Header: "X-A", In: "query"}, `header and in/name contradict each other: keep one of them`},
		{Spec{Type: "basic"}, `username is missing: a basic credential needs username and password`},
		{Spec{Type: "basic", Username: "a:b"}, `username must not hold a colon (RFC 7617)`},
		{Spec{Type: "oauth2"}, `clientId is missing: an oauth2 credential needs it; clientSecret is missing: an oauth2 credential needs it`},
		{Spec{Type: "oauth2", ClientID: "i", ClientSecret: NewSecret("s"), TokenURL: "ftp://x/t"}, `tokenUrl "ftp://x/t" is not an http(s) URL`},
		{Spec{Type: "oauth2", ClientID: "i", ClientSecret: NewSecret("s"), TokenURL: "http://u:s3cr3t@x/t"}, `tokenUrl must not hold a user name or password: use clientId and clientSecret`},
		{Spec{Type: "oauth2", ClientID: "i", ClientSecret: NewSecret("s"), TokenURL: "http://x/t", AuthStyle: "post"}, `authStyle "post" is neither header nor params`},
		{Spec{Type: "az_cli", Resource: "api://x; rm -rf /"}, `resource "api://x; rm -rf /" may hold letters, digits and . _ : / - only`},
		{Spec{Type: "az_cli", Resource: "--help"}, `resource "--help" may hold letters, digits and . _ : / - only`},
		{Spec{Type: "mtls"}, `certFile is missing: an mtls credential needs it; keyFile is missing: an mtls credential needs it`},
		{Spec{Type: "mtls", CertFile: "/nowhere/c.pem", KeyFile: "/nowhere/k.pem"}, `certFile and keyFile "/nowhere/c.pem", "/nowhere/k.pem": no such file`},
	}
	for _, tt := range tests {
		auth, err := FromConfig(tt.spec)
		if err == nil || auth != nil {
			t.Errorf("%+v: made %v", tt.spec, auth)
			continue
		}
		if err.Error() != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.spec.Type, err, tt.want)
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("secret in %s", err)
		}
	}
	for _, none := range []string{"", "none"} {
		if auth, err := FromConfig(Spec{Type: none}); auth != nil || err != nil {
			t.Errorf("type %q gives %v, %v", none, auth, err)
		}
	}
}
