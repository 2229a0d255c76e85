// Package credential puts an agent's credential on the requests that go to it.
//
// Every type here has the two methods of a2a.Authorizer without naming it:
// the package imports nothing of this module, so that it can be read, tested
// and reasoned about by itself. FromConfig makes the type that a configuration
// asks for; the constructors beside it serve tests and embedders.
//
// The package does not decide where a credential may go. Its callers hand it
// only requests to the configured origin of the agent (package a2a binds each
// Authorizer to that origin), and never a request that follows a redirect.
//
// No error, log line or printed value of this package holds a secret: secrets
// are kept in Secret, which cannot print itself, and what a token endpoint or
// a program says is quoted only in part and with the secrets taken out.
package credential

import (
	"context"
	"net/http"
)

// Authorizer is the shape of a2a.Authorizer. It is an alias of an unnamed
// interface, so that package a2a can spell the methods below that return it
// without importing this package. Implementations may be used concurrently.
type Authorizer = interface {
	// Authorize adds the credential to req. It may fetch a token first,
	// bounded by the context of req. It replaces what an earlier call put on
	// the same request and never changes the URL value that req shares with
	// others.
	Authorize(req *http.Request) error
	// Refresh drops a cached token after a 401 and reports whether another
	// try can help.
	Refresh(ctx context.Context) bool
}

// Kind names a type of credential by its configuration name. It is a closed
// set and safe as a metrics label. It is an alias, so that package a2a can ask
// for it without importing this package.
type Kind = string

// The kinds that FromConfig knows.
const (
	KindNone   Kind = "none"
	KindBearer Kind = "bearer"
	KindAPIKey Kind = "apikey"
	KindBasic  Kind = "basic"
	KindOAuth2 Kind = "oauth2"
	KindAzCLI  Kind = "az_cli"
	KindMTLS   Kind = "mtls"
)
