package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// azNegative is how long a failed run of az is remembered.
	azNegative = 30 * time.Second
	// azUnknownLifetime is how long a token without a readable expiry is kept.
	azUnknownLifetime = 5 * time.Minute
	// azOutputLimit bounds what is kept of each output of az, in bytes.
	azOutputLimit = 256 << 10
)

// azResource is what a resource may look like. It goes to az as an argument,
// never through a shell; a leading dash would be taken for an option.
var azResource = regexp.MustCompile(`^[A-Za-z0-9._:/][A-Za-z0-9._:/-]*$`)

// AzCLI is a token of the Azure command line interface, of whoever has run
// `az login` on this machine.
type AzCLI struct {
	resource string
	path     string
	cache    *tokenCache
}

// NewAzCLI returns the credential that asks the program at path ("" for az in
// PATH) for tokens of resource. With an empty resource Authorize fails until
// WithScopes has found one in a card.
func NewAzCLI(resource, path string) (*AzCLI, error) {
	if resource != "" && !azResource.MatchString(resource) {
		return nil, errSpec(KindAzCLI, []string{"resource " + quote(resource) + " may hold letters, digits and . _ : / - only"})
	}
	if path == "" {
		path = "az"
	}
	a := &AzCLI{resource: resource, path: path}
	a.cache = newTokenCache(a.fetch, azNegative, azNegative)
	return a, nil
}

// Authorize sets the Authorization header to a valid token.
func (a *AzCLI) Authorize(req *http.Request) error {
	t, err := a.cache.get(req.Context())
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", t.scheme+" "+t.value.Reveal())
	return nil
}

// Redact takes the token out of text.
func (a *AzCLI) Redact(text string) string { return redact(text, a.cache.latest()) }

// Refresh drops the token after a 401.
func (a *AzCLI) Refresh(context.Context) bool { return a.cache.drop() }

// Kind returns KindAzCLI.
func (*AzCLI) Kind() Kind { return KindAzCLI }

// WithScopes returns the credential for the resource that the scopes of a
// card name (api://ID/.default and api://ID/x are of the resource api://ID),
// or a itself where a resource is configured or none is named. Other forms
// are not taken from a card: a hostile card could ask for a token of, say,
// the management API of the whole account.
func (a *AzCLI) WithScopes(scopes []string) Authorizer {
	if a.resource != "" {
		return a
	}
	for _, scope := range scopes {
		rest, ok := strings.CutPrefix(scope, "api://")
		id, _, cut := strings.Cut(rest, "/")
		if !ok || !cut || id == "" {
			continue
		}
		resource := scope[:strings.LastIndexByte(scope, '/')]
		if placed, err := NewAzCLI(resource, a.path); err == nil {
			return placed
		}
	}
	return a
}

func (a *AzCLI) fetch(ctx context.Context) (token, error) {
	if a.resource == "" {
		return token{}, &Error{Kind: KindAzCLI, Message: "az_cli has no resource: set auth.resource; the agent's card names none"}
	}
	cmd := exec.CommandContext(ctx, a.path, "account", "get-access-token", "--resource", a.resource, "--output", "json")
	stdout, stderr := &cappedBuffer{}, &cappedBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = time.Second // a child of az may hold the pipes open
	if err := cmd.Run(); err != nil {
		return token{}, a.explain(ctx, err, stderr.String())
	}
	return parseAzToken(stdout.Bytes(), time.Now())
}

func (a *AzCLI) explain(ctx context.Context, err error, stderr string) error {
	var message string
	lower := strings.ToLower(stderr)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		message = "the Azure CLI was not found: install az and put it in PATH, or use auth type oauth2"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		message = "az did not answer within " + fetchTimeout.String()
	case strings.Contains(lower, "az login") || strings.Contains(lower, "not logged in"):
		message = "the Azure CLI is not logged in: run az login"
	default:
		message = "az account get-access-token failed"
		if text := scrub(stderr, 200); text != "" {
			message += ": " + text
		}
	}
	return &Error{Kind: KindAzCLI, Message: message, Err: err}
}

// parseAzToken reads what az prints: expires_on is seconds since 1970 (az from
// 2.54 on), expiresOn is local time without a zone. The unambiguous one wins.
func parseAzToken(out []byte, now time.Time) (token, error) {
	var v struct {
		AccessToken string          `json:"accessToken"`
		TokenType   string          `json:"tokenType"`
		ExpiresOn   json.RawMessage `json:"expires_on"`
		LocalTime   string          `json:"expiresOn"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(out, []byte("\xef\xbb\xbf")), &v); err != nil || v.AccessToken == "" {
		return token{}, &Error{Kind: KindAzCLI, Message: "az printed something that is not a token: is it the Azure CLI?", Err: err}
	}
	t := token{value: NewSecret(v.AccessToken), scheme: "Bearer", expires: now.Add(azUnknownLifetime)}
	if problem := headerSecret("accessToken", t.value); problem != "" {
		return token{}, &Error{Kind: KindAzCLI, Message: "az printed a token that no header can carry"}
	}
	epoch := strings.Trim(string(v.ExpiresOn), `"`)
	if seconds, err := strconv.ParseInt(epoch, 10, 64); err == nil && seconds > 0 {
		t.expires = time.Unix(seconds, 0)
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05.999999", time.RFC3339} {
		if at, err := time.ParseInLocation(layout, v.LocalTime, time.Local); err == nil {
			t.expires = at
			break
		}
	}
	return t, nil
}

// cappedBuffer keeps the first azOutputLimit bytes and swallows the rest.
type cappedBuffer struct{ bytes.Buffer }

func (b *cappedBuffer) Write(p []byte) (int, error) {
	if room := azOutputLimit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
