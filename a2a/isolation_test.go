package a2a

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"a2agate/a2a/credential"
)

// isolationSecret is what no other origin, error or log may hold; the token of
// oauth2 is made of it as well.
const isolationSecret = "s3cr3t-v4lue-0123456789"

// secretForms are the forms in which it goes over the wire.
func secretForms() []string {
	pair := base64.StdEncoding.EncodeToString([]byte("user:" + isolationSecret))
	return []string{isolationSecret, url.QueryEscape(isolationSecret), pair, "T-" + isolationSecret}
}

func holdsSecret(text string) bool {
	for _, form := range secretForms() {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// isolationWorld is the agent's own server, and another one that must never
// see a credential. Both answer by path, and keep all that they are sent.
type isolationWorld struct {
	home, other *httptest.Server

	mu    sync.Mutex
	seen  map[*httptest.Server][]string // each request, dumped
	certs map[*httptest.Server]int      // client certificates shown
	on    map[string]http.HandlerFunc   // "home /path"
}

func newIsolationWorld(t *testing.T, secure bool) *isolationWorld {
	t.Helper()
	w := &isolationWorld{seen: map[*httptest.Server][]string{}, certs: map[*httptest.Server]int{}, on: map[string]http.HandlerFunc{}}
	start := func(name string) *httptest.Server {
		var s *httptest.Server
		s = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var dump bytes.Buffer
			fmt.Fprintf(&dump, "%s %s%s\n", r.Method, r.Host, r.RequestURI)
			_ = r.Header.Write(&dump)
			dump.Write(body)
			w.mu.Lock()
			w.seen[s] = append(w.seen[s], dump.String())
			if r.TLS != nil {
				w.certs[s] += len(r.TLS.PeerCertificates)
			}
			answer := w.on[name+" "+r.URL.Path]
			w.mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(body))
			if answer == nil {
				http.NotFound(rw, r)
				return
			}
			answer(rw, r)
		}))
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		if secure {
			s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s
	}
	w.home, w.other = start("home"), start("other")
	return w
}

// answer sets what a server answers at a path.
func (w *isolationWorld) answer(at string, h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on[at] = h
}

func (w *isolationWorld) take(s *httptest.Server) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen[s]
	w.seen[s] = nil
	return seen
}

// isolationKinds are all credentials, and configured headers.
func isolationKinds(w *isolationWorld) map[string]AgentConfig {
	secret := credential.NewSecret(isolationSecret)
	with := func(spec credential.Spec) AgentConfig {
		auth, err := credential.FromConfig(spec)
		if err != nil {
			panic(err) // a fault of the test
		}
		return AgentConfig{Authorizer: auth}
	}
	return map[string]AgentConfig{
		"bearer":                      with(credential.Spec{Type: "bearer", Token: secret}),
		"basic":                       with(credential.Spec{Type: "basic", Username: "user", Password: secret}),
		"key in header":               with(credential.Spec{Type: "apikey", Key: secret, Header: "X-Agent-Key"}),
		"key in query":                with(credential.Spec{Type: "apikey", Key: secret, In: "query", Name: "key"}),
		"key in cookie":               with(credential.Spec{Type: "apikey", Key: secret, In: "cookie", Name: "sid"}),
		"oauth2 in header":            with(credential.Spec{Type: "oauth2", ClientID: "id", ClientSecret: secret, TokenURL: w.home.URL + "/token", AuthStyle: "header"}),
		"oauth2 in params":            with(credential.Spec{Type: "oauth2", ClientID: "id", ClientSecret: secret, TokenURL: w.home.URL + "/token", AuthStyle: "params"}),
		"oauth2 by card":              with(credential.Spec{Type: "oauth2", ClientID: "id", ClientSecret: secret}),
		"headers":                     {Headers: http.Header{"X-Static": {isolationSecret}, "Authorization": {"Bearer " + isolationSecret}}},
		"a header of no telling name": {Headers: http.Header{"X-Team": {isolationSecret}}},
	}
}

// isolationSend does all that a gateway does with an agent: card, sends,
// streams, reads, cancels, the extended card. It returns the errors.
func isolationSend(t *testing.T, a *Agent) (errs []error) {
	t.Helper()
	ctx := testContext(t)
	client, err := a.Client(ctx)
	errs = append(errs, err)
	if err != nil {
		return errs
	}
	_, err = client.Send(ctx, hello())
	errs = append(errs, err)
	s, err := client.Stream(ctx, hello())
	if err == nil {
		_, err = drain(s)
	}
	errs = append(errs, err)
	_, err = client.GetTask(ctx, "t1", nil)
	errs = append(errs, err)
	_, err = client.CancelTask(ctx, "t1")
	errs = append(errs, err)
	if s, err = client.Subscribe(ctx, "t1"); err == nil {
		_, err = drain(s)
	}
	errs = append(errs, err)
	_, err = client.ExtendedCard(ctx)
	return append(errs, err)
}

// rediscover lets the agent look for its card again.
func rediscover(t *testing.T, a *Agent) {
	t.Helper()
	a.mu.Lock()
	a.checked, a.fresh = time.Time{}, time.Time{}
	a.mu.Unlock()
	_, _ = a.FetchCard(testContext(t))
}

func redirectTo(status int, target string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", target)
		w.WriteHeader(status)
	}
}

func tokenAnswer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"}`, "T-"+isolationSecret)
}

func rpcAnswer(result string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","result":%s}`, result)
	}
}

// isolationAttack makes the other server ask for the credential. It returns
// whether the other server is to be reached at all, so that the test cannot
// pass by doing nothing.
type isolationAttack struct {
	name  string
	reach bool
	setUp func(w *isolationWorld, cfg *AgentConfig)
	later func(w *isolationWorld) // before the second discovery
}

func isolationAttacks() []isolationAttack {
	secureScheme := `"securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":%q,"scopes":{}}}},"k":{"type":"apiKey","in":"query","name":"key"}},"security":[{"o":[]}]`
	card := func(w *isolationWorld, token string, interfaces ...string) string {
		var list []string
		for _, u := range interfaces {
			list = append(list, fmt.Sprintf(`{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}`, u))
		}
		return fmt.Sprintf(`{"name":"x","capabilities":{"streaming":true,"extendedAgentCard":true},"supportedInterfaces":[%s],`+secureScheme+`}`, strings.Join(list, ","), token)
	}
	cardAt := func(w *isolationWorld, at, body string) {
		w.answer(at, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("Cache-Control", "no-cache")
			fmt.Fprint(rw, body)
		})
	}
	var list []isolationAttack
	add := func(a isolationAttack) { list = append(list, a) }
	add(isolationAttack{name: "card elsewhere", reach: true, setUp: func(w *isolationWorld, cfg *AgentConfig) {
		cfg.CardPath = w.other.URL + "/card"
		cardAt(w, "other /card", card(w, w.other.URL+"/token", w.other.URL+"/a2a", w.home.URL+"/a2a"))
	}})
	add(isolationAttack{name: "card elsewhere, credential always", reach: true, setUp: func(w *isolationWorld, cfg *AgentConfig) {
		cfg.CardPath, cfg.AuthOnCard = w.other.URL+"/card", AuthOnCardAlways
		cardAt(w, "other /card", card(w, w.other.URL+"/token", w.home.URL+"/a2a"))
	}})
	for _, status := range []int{301, 302, 303, 307, 308} {
		add(isolationAttack{name: fmt.Sprintf("card redirected, %d", status), reach: true, setUp: func(w *isolationWorld, cfg *AgentConfig) {
			cfg.AuthOnCard = AuthOnCardAlways
			w.answer("home "+current, redirectTo(status, w.other.URL+"/card"))
			cardAt(w, "other /card", card(w, w.other.URL+"/token", w.home.URL+"/a2a"))
		}})
		add(isolationAttack{name: fmt.Sprintf("card behind a login elsewhere, %d", status), reach: true, setUp: func(w *isolationWorld, cfg *AgentConfig) {
			w.answer("home "+current, redirectTo(status, w.other.URL+"/card"))
			w.answer("other /card", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("WWW-Authenticate", "Bearer")
				rw.WriteHeader(401)
			})
		}})
		add(isolationAttack{name: fmt.Sprintf("calls redirected, %d", status), setUp: func(w *isolationWorld, cfg *AgentConfig) {
			cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.home.URL+"/a2a"))
			w.answer("home /a2a", redirectTo(status, w.other.URL+"/a2a"))
		}})
		add(isolationAttack{name: fmt.Sprintf("token endpoint redirected, %d", status), setUp: func(w *isolationWorld, cfg *AgentConfig) {
			cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.home.URL+"/a2a"))
			w.answer("home /token", redirectTo(status, w.other.URL+"/token"))
		}})
	}
	for name, target := range map[string]string{"with a user": "http://user@OTHER/a2a", "without scheme": "//OTHER/a2a", "with a backslash": "http://OTHER\\@HOME/a2a"} {
		add(isolationAttack{name: "calls redirected " + name, setUp: func(w *isolationWorld, cfg *AgentConfig) {
			other, home := strings.TrimPrefix(w.other.URL, "http://"), strings.TrimPrefix(w.home.URL, "http://")
			cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.home.URL+"/a2a"))
			w.answer("home /a2a", redirectTo(307, strings.NewReplacer("OTHER", other, "HOME", home).Replace(target)))
		}})
	}
	add(isolationAttack{name: "token endpoint by the card", setUp: func(w *isolationWorld, cfg *AgentConfig) {
		cardAt(w, "home "+current, card(w, w.other.URL+"/token", w.home.URL+"/a2a"))
	}})
	add(isolationAttack{name: "interface elsewhere", setUp: func(w *isolationWorld, cfg *AgentConfig) {
		cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.other.URL+"/a2a", w.home.URL+"/a2a"))
	}})
	for _, policy := range []URLPolicy{PolicyAuto, PolicyCard} {
		add(isolationAttack{name: "interface elsewhere, allowed, " + string(policy), reach: true, setUp: func(w *isolationWorld, cfg *AgentConfig) {
			cfg.AllowHosts, cfg.URLPolicy = []string{"127.0.0.1"}, policy
			cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.other.URL+"/a2a", w.home.URL+"/a2a"))
		}})
	}
	add(isolationAttack{name: "interface elsewhere that refuses, allowed", reach: true, setUp: func(w *isolationWorld, cfg *AgentConfig) {
		cfg.AllowHosts = []string{"127.0.0.1"}
		cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.other.URL+"/a2a", w.home.URL+"/a2a"))
		w.answer("other /a2a", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(401) })
	}})
	add(isolationAttack{name: "another port of an unusable address", setUp: func(w *isolationWorld, cfg *AgentConfig) {
		port := w.other.URL[strings.LastIndexByte(w.other.URL, ':'):]
		cardAt(w, "home "+current, card(w, w.home.URL+"/token", "http://0.0.0.0"+port+"/a2a"))
	}})
	add(isolationAttack{name: "card changed at a refresh", setUp: func(w *isolationWorld, cfg *AgentConfig) {
		cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.home.URL+"/a2a"))
	}, later: func(w *isolationWorld) {
		cardAt(w, "home "+current, card(w, w.other.URL+"/token", w.other.URL+"/a2a", "http://0.0.0.0"+w.other.URL[strings.LastIndexByte(w.other.URL, ':'):]+"/a2a"))
	}})
	add(isolationAttack{name: "card moved at a refresh", reach: true, setUp: func(w *isolationWorld, cfg *AgentConfig) {
		cardAt(w, "home "+current, card(w, w.home.URL+"/token", w.home.URL+"/a2a"))
	}, later: func(w *isolationWorld) {
		w.answer("home "+current, redirectTo(308, w.other.URL+"/card"))
		cardAt(w, "other /card", card(w, w.other.URL+"/token", w.other.URL+"/a2a", "a2a", "/a2a"))
	}})
	return list
}

// TestCredentialsStayAtTheConfiguredOrigin: whatever an agent does, its
// credential, its token, its client's secret and its configured headers go to
// its configured origin only (reference 4.1; checklist 62).
func TestCredentialsStayAtTheConfiguredOrigin(t *testing.T) {
	for _, attack := range isolationAttacks() {
		t.Run(attack.name, func(t *testing.T) {
			atHome, elsewhere := 0, 0
			kinds := isolationKinds(newIsolationWorld(t, false))
			for kind := range kinds {
				w := newIsolationWorld(t, false)
				cfg := isolationKinds(w)[kind]
				cfg.URL, cfg.EmptyStreamFallback = w.home.URL, true
				w.answer("home /token", tokenAnswer)
				w.answer("other /token", tokenAnswer)
				w.answer("home /a2a", rpcAnswer(taskCompleted))
				w.answer("other /a2a", rpcAnswer(taskCompleted))
				attack.setUp(w, &cfg)
				a := newAgent(t, cfg)
				isolationSend(t, a)
				if attack.later != nil {
					attack.later(w)
				}
				rediscover(t, a)
				isolationSend(t, a)
				for _, request := range w.take(w.other) {
					elsewhere++
					if holdsSecret(request) || strings.Contains(request, "Referer") || strings.Contains(request, "client_id") {
						t.Errorf("%s: the other origin got\n%s", kind, request)
					}
				}
				for _, request := range w.take(w.home) {
					if holdsSecret(request) {
						atHome++
					}
				}
			}
			if attack.reach && elsewhere < len(kinds) {
				t.Errorf("the other origin was reached %d times only", elsewhere)
			}
			if atHome == 0 && !strings.HasPrefix(attack.name, "card") {
				t.Error("no credential was sent at all")
			}
		})
	}
}

// TestCredentialsStayAtTheirListener: another name of the loopback may be
// another listener; a redirect there takes no credential along.
func TestCredentialsStayAtTheirListener(t *testing.T) {
	for kind := range isolationKinds(newIsolationWorld(t, false)) {
		w := newIsolationWorld(t, false)
		cfg := isolationKinds(w)[kind]
		alias := strings.Replace(w.home.URL, "127.0.0.1", "localhost", 1)
		cfg.URL, cfg.AuthOnCard = w.home.URL, AuthOnCardAlways
		w.answer("home /token", tokenAnswer)
		w.answer("home "+current, redirectTo(302, alias+"/card"))
		w.answer("home /card", func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(rw, `{"name":"x","supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"streaming":true}}`, alias+"/a2a")
		})
		w.answer("home /a2a", rpcAnswer(taskCompleted))
		isolationSend(t, newAgent(t, cfg))
		aliased, held := 0, 0
		for _, request := range w.take(w.home) {
			line, _, _ := strings.Cut(request, "\n")
			if strings.Contains(line, "localhost") {
				aliased++
				if holdsSecret(request) {
					t.Errorf("%s: the other listener got\n%s", kind, request)
				}
			} else if holdsSecret(request) {
				held++
			}
		}
		if (aliased == 0 || held == 0) && kind != "oauth2 by card" {
			t.Errorf("%s: %d requests to the other name, %d with the credential: the test proves nothing", kind, aliased, held)
		}
	}
}

// TestClientCertificateOfAnAgent: the certificate of an mtls agent is shown to
// its own origin only: not where a card or a call is redirected to, not to an
// allowed interface, not to a token endpoint.
func TestClientCertificateOfAnAgent(t *testing.T) {
	w := newIsolationWorld(t, true)
	certFile, keyFile, caFile := certificateFiles(t, w.home, w.other)
	made := auth(t, credential.Spec{Type: "mtls", CertFile: certFile, KeyFile: keyFile, CAFile: caFile})
	card := fmt.Sprintf(`{"name":"x","capabilities":{"streaming":true},"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, w.other.URL+"/a2a", w.home.URL+"/a2a")
	serveIt := func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, card) }
	w.answer("other /card", serveIt)
	w.answer("home "+current, serveIt)
	w.answer("home /moved", redirectTo(307, w.other.URL+"/card"))
	w.answer("other /a2a", rpcAnswer(taskCompleted))
	w.answer("home /a2a", redirectTo(307, w.other.URL+"/a2a"))
	for _, cfg := range []AgentConfig{
		{URL: w.home.URL, AllowHosts: []string{"127.0.0.1"}},
		{CardURL: w.home.URL + "/moved"},
		{URL: w.home.URL, CardPath: w.other.URL + "/card"},
		{URL: w.home.URL},
	} {
		cfg.Authorizer = made
		isolationSend(t, newAgent(t, cfg))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.certs[w.home] == 0 || w.certs[w.other] != 0 || len(w.seen[w.other]) == 0 {
		t.Errorf("certificates shown: %d at home, %d elsewhere over %d requests", w.certs[w.home], w.certs[w.other], len(w.seen[w.other]))
	}
}

// certificateFiles writes a client's certificate with its key, and the servers'
// own certificates as authorities.
func certificateFiles(t *testing.T, servers ...*httptest.Server) (certFile, keyFile, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var roots []byte
	for _, s := range servers {
		roots = append(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})...)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})), write("ca.pem", roots)
}
