package a2a

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"a2agate/a2a/credential"
)

// TestCardPlacesTheCredential: the card decides where a key goes when the
// configuration does not, and the token endpoint only where it may.
func TestCardPlacesTheCredential(t *testing.T) {
	s := newCardServer(t)
	login := httptest.NewServer(serve(200, "application/json", `{"access_token":"T"}`))
	defer login.Close()
	oauthCard := func(tokenURL string) string {
		return fmt.Sprintf(`{"name":"x","url":"/a2a","securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":%q,"scopes":{}}}}},"security":[{"o":[]}]}`, tokenURL)
	}
	oauth := credential.Spec{Type: "oauth2", ClientID: "i", ClientSecret: credential.NewSecret("s")}
	fromCard := oauth
	fromCard.TokenURL = credential.TokenURLFromCard
	key := credential.Spec{Type: "apikey", Key: credential.NewSecret("k")}
	tests := []struct {
		name, card string
		spec       credential.Spec
		allow      []string
		sent       string // what the agent gets: "header: value" or "?query"
		problem    string // or why the call fails
		note       string
	}{
		{"key in the query", `{"name":"x","url":"/a2a","securitySchemes":{"a":{"apiKeySecurityScheme":{"location":"query","name":"other"}},"b":{"apiKeySecurityScheme":{"location":"query","name":"key"}}},"securityRequirements":[{"schemes":{"b":{}}}]}`, key, nil, "?key=k", "", ""},
		{"key without a scheme", `{"name":"x","url":"/a2a"}`, key, nil, "X-Api-Key: k", "", ""},
		{"token endpoint, by configuration", oauthCard(login.URL), fromCard, nil, "Authorization: Bearer T", "", ""},
		{"token endpoint, allowed host", oauthCard(login.URL), oauth, []string{strings.TrimPrefix(login.URL, "http://")}, "Authorization: Bearer T", "", ""},
		{"token endpoint, not allowed", oauthCard(login.URL), oauth, nil, "", `oauth2 has no tokenUrl: set it, or set it to "fromCard" to use the one in the agent's card`, "the card names the token endpoint " + login.URL + ": set auth.tokenUrl to it, or to fromCard"},
		{"token endpoint, metadata service", oauthCard("http://169.254.169.254/token"), fromCard, nil, "", "token endpoint http://169.254.169.254/token is not allowed: 169.254.169.254 is a metadata service address, which is not called unless it is configured as an address", ""},
		{"token endpoint, a file", oauthCard("file:///etc/passwd"), fromCard, nil, "", "oauth2 takes its tokenUrl from the agent's card, and the card names none that can be used", "the card's tokenUrl file:///etc/passwd is not an http(s) URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.on(current, serve(200, "application/json", tt.card))
			s.on("/a2a", serve(500, "", ""))
			a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: auth(t, tt.spec), AllowHosts: tt.allow})
			client, err := a.Client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.take()
			_, err = client.CancelTask(t.Context(), "t")
			if tt.problem != "" {
				var coded *Error
				if !errors.As(err, &coded) || coded.Message != tt.problem || coded.Cause != CauseAuth {
					t.Errorf("got  %v\nwant %s", err, tt.problem)
				}
			}
			for _, r := range s.requests() {
				got := "?" + r.URL.RawQuery
				if name, _, ok := strings.Cut(tt.sent, ": "); ok {
					got = name + ": " + r.Header.Get(name)
				}
				if tt.problem != "" || got != tt.sent {
					t.Errorf("sent %s %q, want %q", r.URL, got, tt.sent)
				}
			}
			if tt.note != "" {
				wantNote(t, a, tt.note)
			}
		})
	}
}

// TestTokenOutlivesARefresh: the card is fetched again; the credential that it
// places is the same one, with its token.
func TestTokenOutlivesARefresh(t *testing.T) {
	var tokens atomic.Int32
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(200, "application/json", fmt.Sprintf(`{"access_token":"T%d"}`, tokens.Add(1)))(w, r)
	}))
	defer login.Close()
	s := newCardServer(t)
	s.on("/a2a", serve(500, "", ""))
	spec := credential.Spec{Type: "oauth2", ClientID: "i", ClientSecret: credential.NewSecret("s"), TokenURL: credential.TokenURLFromCard}
	a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: auth(t, spec)})
	for i := range 3 {
		s.on(current, serve(200, "application/json", fmt.Sprintf(`{"name":"x%d","url":"/a2a","securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":%q}}}}}`, i, login.URL)))
		a.mu.Lock()
		a.checked, a.fresh = time.Time{}, time.Time{}
		a.mu.Unlock()
		if card, err := a.FetchCard(t.Context()); err != nil || card.Name != fmt.Sprintf("x%d", i) {
			t.Fatal(err)
		}
		client, err := a.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.CancelTask(t.Context(), "t")
	}
	if n := tokens.Load(); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// TestLogHoldsNoSecret: what the agent logs and shows over a life with a
// refused credential and a key in its address.
func TestLogHoldsNoSecret(t *testing.T) {
	s := newCardServer(t)
	s.on("/a"+current, serve(401, "", ""))
	var logged bytes.Buffer
	a := newAgent(t, AgentConfig{URL: s.URL + "/a?key=s3cr3t-query", Authorizer: auth(t, credential.Spec{Type: "apikey", Key: credential.NewSecret("s3cr3t-key"), In: "query", Name: "k"}),
		Headers: http.Header{"X-Token": {"s3cr3t-header"}}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	_, err := a.FetchCard(t.Context())
	a.Close() // waits for the log
	shown := fmt.Sprintf("%s %v %+v %+v", logged.String(), err, a.Status(), a.Attempts())
	if len(logged.String()) == 0 || strings.Contains(shown, "s3cr3t") {
		t.Errorf("shown: %s", shown)
	}
	attempts := a.Attempts()
	if len(attempts) != 5 || attempts[0].Status != 401 || attempts[0].Authorized || !attempts[1].Authorized || attempts[2].Status != 404 {
		t.Errorf("attempts are %+v", attempts)
	}
}

// TestMTLSAgent: the certificate of the credential is shown when the card is
// fetched; no option but the credential is needed.
func TestMTLSAgent(t *testing.T) {
	var shown atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Add(int32(len(r.TLS.PeerCertificates)))
		serveCard("https://"+r.Host+"/")(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: s.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: auth(t, credential.Spec{Type: "mtls", CertFile: cert, KeyFile: key, CAFile: cert})})
	if _, err := a.Client(t.Context()); err != nil || shown.Load() == 0 {
		t.Errorf("%d certificates shown: %v", shown.Load(), err)
	}
	plain := newAgent(t, AgentConfig{URL: s.URL})
	_, err = plain.Client(t.Context())
	var coded *Error
	if !errors.As(err, &coded) || coded.Cause != CauseTLS || !strings.HasSuffix(coded.Message, "its certificate is signed by an unknown authority") {
		t.Errorf("without the authority: %v", err)
	}
}
