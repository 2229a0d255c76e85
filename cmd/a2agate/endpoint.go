package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"a2agate/translate"
)

// gatewayExample is the address of a gateway that was told nothing.
const gatewayExample = "http://127.0.0.1:8931/mcp"

// checkEndpoint refuses what cannot be the address of a gateway's MCP
// endpoint, and guesses what was meant. Any path will do, as a proxy may have
// its own; no path is the one thing that is not an endpoint anywhere.
func checkEndpoint(flag, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		meant := ""
		if !strings.Contains(address, "://") {
			meant = endpointBelow("http://" + address)
		}
		if meant == "" {
			return usageError{fmt.Errorf("%s %q is not an http or https URL; want the gateway's address, such as %s", flag, hiddenUser(address), gatewayExample)}
		}
		return usageError{fmt.Errorf("%s %q is not an http or https URL; did you mean %s?", flag, hiddenUser(address), meant)}
	case strings.Trim(u.Path, "/") == "":
		return usageError{fmt.Errorf("%s %q has no path, and the gateway's MCP endpoint has one; did you mean %s?", flag, hiddenUser(address), endpointBelow(address))}
	}
	return nil
}

// endpointBelow is the endpoint of the gateway at an address, "" where that is
// none. What may be a password is left out.
func endpointBelow(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || strings.ContainsAny(u.Host, " \"'") {
		return ""
	}
	path := u.Path
	if strings.Trim(path, "/") == "" {
		path = "/mcp"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String()
}

// hiddenUser is an address without the user and password in it.
func hiddenUser(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	authority, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		rest = "***" + rest[at:]
	}
	return scheme + rest
}

// notReached says why a request got no answer from a gateway.
func notReached(ctx context.Context, flags callFlags, err error) error {
	if ctx.Err() != nil {
		return outOfTime(ctx, flags)
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("the certificate of %s is not accepted here: %s; use the name that stands in it, and name its authority in SSL_CERT_FILE; 'a2agate doctor --gateway %[1]s' looks closer",
			hiddenQuery(flags.url), tlsWords(certificate))
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("what listens at %s does not speak TLS; did you mean http:// in --url?", hiddenQuery(flags.url))
	}
	var op interface{ Unwrap() error }
	if errors.As(err, &op) {
		err = op.Unwrap()
	}
	return fmt.Errorf("no gateway at %s: %w; start one with 'a2agate demo', or say --url", hiddenQuery(flags.url), err)
}

// outOfTime says that the answer did not come while call waited for it.
func outOfTime(ctx context.Context, flags callFlags) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("interrupted before there was an answer")
	}
	words := fmt.Sprintf("no answer within %s; --timeout waits longer", flags.timeout)
	switch {
	case flags.task != "":
		words += fmt.Sprintf(", and 'a2agate call a2a_get_task' with {\"taskHandle\":%q} asks again", flags.task)
	case flags.sends:
		words += `, and a smaller "timeoutSeconds" in the arguments gets a handle to ask again with`
	}
	return errors.New(words)
}

// notAnEndpoint words an answer that is not MCP's: what is there, and what to
// do. body is what came.
func notAnEndpoint(resp *http.Response, body []byte) error {
	said := clipped(body)
	if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
		return fmt.Errorf("the gateway answers %s: %s", resp.Status, said)
	}
	meant := *resp.Request.URL
	meant.Path, meant.RawPath, meant.RawQuery, meant.User = "/mcp", "", "", nil
	if resp.Request.URL.Path == meant.Path {
		return fmt.Errorf("there is no gateway at %s: it answers %s: %s; say --url", hiddenQuery(resp.Request.URL.String()), resp.Status, said)
	}
	return fmt.Errorf("there is no MCP endpoint at %s (%s); did you mean %s?", hiddenQuery(resp.Request.URL.String()), resp.Status, meant.String())
}

// clipped is what somebody answered, short enough for a message.
func clipped(body []byte) string {
	const most = 300
	return translate.CutRunes(oneLine(string(body[:min(len(body), 8*most)])), most)
}

// refusedToken is what a gateway says that wants to know who calls, and how to
// tell it. err is in its own words.
func refusedToken(flags callFlags, err error) error {
	if flags.token == "" {
		return fmt.Errorf("%w; set A2AGATE_TOKEN to your token for this gateway", err)
	}
	return fmt.Errorf("%w; it was the token of A2AGATE_TOKEN: set it to your token for this gateway", err)
}
