package config

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"golang.org/x/net/http/httpguts"
)

// The rules return "" for a good text, else what is wrong with it and the
// remedy, to stand behind the quoted value.

const (
	// aliasPattern is what an alias or a profile's name looks like.
	aliasPattern = `^[A-Za-z0-9_-]{1,64}$`
	aliasRule    = "use 1 to 64 of A-Z, a-z, 0-9, _ and -"
	urlPattern   = `^[Hh][Tt][Tt][Pp][Ss]?://[^/?#]`
)

var alias = regexp.MustCompile(aliasPattern)

func isAlias(s string) bool { return alias.MatchString(s) }

// urlRule accepts an absolute http or https URL without user and fragment.
func urlRule(s string) string {
	if !utf8.ValidString(s) {
		return "is not UTF-8; write the bytes as %XX"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "has a blank or a control character; remove it, or write %20 for a blank"
	}
	u, err := url.Parse(s)
	if err != nil {
		return "is not a URL; write it as https://host/path"
	}
	switch {
	case !strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https"):
		return "is not an http or https URL; begin it with https:// or http://"
	case u.Hostname() == "":
		return "names no host; write it as https://host/path"
	case u.User != nil:
		return "holds a user name or password; put them into auth"
	case u.Fragment != "" || strings.Contains(s, "#"):
		return "has a fragment; remove # and what follows"
	case u.Port() != "" && !isPort(u.Port(), 1):
		return "has no valid port; give 1 to 65535"
	}
	return ""
}

func isPort(s string, least int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= least && n <= 65535 && strconv.Itoa(n) == s
}

// cardPathRule accepts a path, or a whole URL.
func cardPathRule(s string) string {
	if strings.Contains(s, "://") {
		return urlRule(s)
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || strings.ContainsAny(s, " #\\") || strings.HasPrefix(s, "//") {
		return "is neither a path nor a URL; write it as .well-known/agent-card.json or https://host/card.json"
	}
	return ""
}

// tokenURLRule accepts a URL, or the word that lets the card name it.
func tokenURLRule(s string) string {
	if s == "fromCard" {
		return ""
	}
	return urlRule(s)
}

// publicURLRule accepts a URL that paths can be put behind.
func publicURLRule(s string) string {
	if wrong := urlRule(s); wrong != "" {
		return wrong
	}
	if strings.Contains(s, "?") {
		return "has a query; remove ? and what follows"
	}
	return ""
}

// issuerRule accepts an issuer: https, or http on this machine.
func issuerRule(s string) string {
	if wrong := publicURLRule(s); wrong != "" {
		return wrong
	}
	u, err := url.Parse(s)
	if err == nil && strings.EqualFold(u.Scheme, "http") && !isLoopback(u.Hostname()) {
		return "is not https; an issuer elsewhere than on this machine needs it"
	}
	return ""
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// hostName is the letters of a host name or IPv4 address.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// isHost accepts a name, an IPv4 address or an IPv6 address in brackets.
func isHost(s string) bool {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		return ok && err == nil && ip.Is6()
	}
	return len(s) <= 253 && hostName.MatchString(s)
}

// hostRule accepts a host without a port.
func hostRule(s string) string {
	if isHost(s) {
		return ""
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return "is an IPv6 address without brackets; write [" + s + "]"
	}
	if host, port, err := net.SplitHostPort(s); err == nil && isHost(bracket(host)) && isPort(port, 0) {
		return "has a port; write " + bracket(host) + ", which is good for every port"
	}
	return "is not a host; write a name such as gateway.example.com, without scheme, port or path"
}

// listenHostRule accepts the host part of listen, IPv6 with or without brackets.
func listenHostRule(s string) string {
	if isHost(bracket(s)) || isHost(s) {
		return ""
	}
	if host, port, err := net.SplitHostPort(s); err == nil && isHost(bracket(host)) && isPort(port, 0) {
		return "has a port; give it as port"
	}
	return "is not a host; write an address of this machine, such as 127.0.0.1"
}

// hostPortRule accepts host or host:port.
func hostPortRule(s string) string {
	if isHost(s) {
		return ""
	}
	if host, port, err := net.SplitHostPort(s); err == nil && isHost(bracket(host)) && isPort(port, 1) {
		return ""
	}
	return "is not host or host:port; write a name such as agents.example.com or agents.example.com:8443"
}

func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// listenRule accepts an address to listen on.
func listenRule(s string) string { return addressRule(s, "127.0.0.1:8931") }

func addressRule(s, example string) string {
	host, port, err := net.SplitHostPort(s)
	switch {
	case err != nil:
		return "is not host:port; write it as " + example
	case !isPort(port, 0):
		return "has no valid port; give 0 (any free one) to 65535"
	case host != "" && !isHost(bracket(host)):
		return "has no valid host; write it as " + example
	}
	return ""
}

// debugListenRule accepts an address that only this machine reaches.
func debugListenRule(s string) string {
	const example = "127.0.0.1:6060"
	if wrong := addressRule(s, example); wrong != "" {
		return wrong
	}
	if host, _, _ := net.SplitHostPort(s); !isLoopback(host) {
		return "is not on the loopback, and the debug listener shows the contents of the memory; write it as " + example
	}
	return ""
}

// originRule accepts the Origin of a browser page.
func originRule(s string) string {
	if s == "*" {
		return "would let every web page call; name each origin, such as https://app.example.com"
	}
	scheme, rest, _ := strings.Cut(s, "://")
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		host, port = rest, "1"
	} else {
		host = bracket(host)
	}
	if !urlScheme.MatchString(scheme) || !isHost(host) || !isPort(port, 1) {
		return "is not an origin; write scheme://host or scheme://host:port, without a path"
	}
	return ""
}

var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// proxyRule accepts an address or a network.
func proxyRule(s string) string {
	if _, err := parseProxy(s); err != nil {
		return "is not an address or network; write it as 10.0.0.7 or 10.0.0.0/8"
	}
	return ""
}

func parseProxy(s string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(s); err == nil {
		if ip.Zone() != "" {
			return netip.Prefix{}, errors.New("zone")
		}
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

// headerNameRule accepts the name of a header that may be set.
func headerNameRule(s string) string {
	if !httpguts.ValidHeaderFieldName(s) {
		return "is not the name of an HTTP header"
	}
	switch strings.ToLower(s) {
	case "host", "content-length", "content-type", "transfer-encoding", "connection", "accept", "a2a-version", "a2a-extensions":
		return "is set by the gateway itself; remove it"
	}
	return ""
}

// headerValueRule accepts what a header can carry.
func headerValueRule(s string) string {
	if !httpguts.ValidHeaderFieldValue(s) || strings.TrimSpace(s) != s {
		return "cannot be sent in an HTTP header; it has a line break, a control character or a blank at an end"
	}
	return ""
}

// userRule accepts a user name of basic authentication (RFC 7617, 2).
func userRule(s string) string {
	if strings.Contains(s, ":") || oneLineRule(s) != "" {
		return "cannot be a user name; it has a colon, a control character or a blank at an end"
	}
	return ""
}

// bearerRule accepts a token as RFC 6750 writes it.
func bearerRule(s string) string {
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return "cannot be a bearer token; use printable ASCII without blanks"
		}
	}
	return ""
}

var azResource = regexp.MustCompile(azPattern)

const azPattern = `^[A-Za-z0-9._:/-]+$`

// resourceRule accepts a resource of Azure.
func resourceRule(s string) string {
	if !azResource.MatchString(s) {
		return "is not a resource; use letters, digits and . _ : / - only, such as api://1234"
	}
	return ""
}

var toolPrefix = regexp.MustCompile(toolPrefixPattern)

const toolPrefixPattern = `^[A-Za-z0-9_-]{0,32}$`

// toolPrefixRule accepts what a tool's name can begin with.
func toolPrefixRule(s string) string {
	if !toolPrefix.MatchString(s) {
		return "cannot begin the name of a tool; use at most 32 of A-Z, a-z, 0-9, _ and -"
	}
	return ""
}

var sha256Hex = regexp.MustCompile(sha256Pattern)

const sha256Pattern = `^[0-9A-Fa-f]{64}$`

// sha256Rule accepts a digest.
func sha256Rule(s string) string {
	if !sha256Hex.MatchString(s) {
		return "is not a SHA-256 digest; write the 64 hexadecimal digits that sha256sum prints for the token without a line break"
	}
	return ""
}

// oneLineRule accepts a name for people.
func oneLineRule(s string) string {
	if strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "is not a name; use one line without blanks at the ends"
	}
	return ""
}

// scopeRule accepts a scope as RFC 6749 writes it.
func scopeRule(s string) string {
	if wrong := bearerRule(s); wrong != "" || strings.ContainsAny(s, `"\`) {
		return "is not a scope; give each scope as a list element of its own"
	}
	return ""
}

// storeURLRule accepts the address of a Redis server. It has a secret in it.
func storeURLRule(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return "is not a Redis URL; write redis://[user:password@]host:port[/database], or rediss:// for TLS"
	}
	return ""
}

// inputSchemaRule accepts a schema of arguments.
func inputSchemaRule(s json.RawMessage) string {
	var top struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(s, &top); err != nil || top.Type != "object" {
		return `the schema does not describe an object; begin it with {"type": "object", "properties": …}`
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	// Without this a $ref reads files and fetches URLs.
	compiler.LoadURL = func(string) (io.ReadCloser, error) {
		return nil, errors.New("references to other documents are not followed")
	}
	const name = "urn:a2agate:input-schema"
	if err := compiler.AddResource(name, strings.NewReader(string(s))); err != nil {
		return "not a JSON Schema: " + schemaTrouble(err)
	}
	if err := compiled(compiler, name); err != nil {
		return "not a JSON Schema: " + schemaTrouble(err)
	}
	return ""
}

// compiled compiles a schema. The compiler panics over a number that is out of
// all reach (1e999999999), which must not end a gateway that reloads its file.
func compiled(compiler *jsonschema.Compiler, name string) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it has a number that is out of reach")
		}
	}()
	_, err = compiler.Compile(name)
	return err
}

// schemaTrouble is the innermost cause of a refused schema, with its place.
func schemaTrouble(err error) string {
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		for len(invalid.Causes) > 0 {
			invalid = invalid.Causes[0]
		}
		return "at " + quote("/"+strings.TrimPrefix(invalid.InstanceLocation, "/")) + ": " + cut(invalid.Message)
	}
	var bad *jsonschema.SchemaError
	if errors.As(err, &bad) && bad.Err != nil {
		return schemaTrouble(bad.Err)
	}
	return cut(strings.ReplaceAll(err.Error(), "\n", " "))
}
