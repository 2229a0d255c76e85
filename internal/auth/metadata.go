package auth

import (
	"encoding/json"
	"net/http"
	"strings"
)

// resourceMetadata is the protected resource metadata document (RFC 9728, 2).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// Metadata serves the protected resource metadata, which tells clients where
// to get a token, at /.well-known/oauth-protected-resource and at the same
// with the path of the endpoint or of a profile behind it (RFC 9728, 3.1). It
// is to be served without authentication. nil without OAuth: then clients are
// to find nothing.
func (a *Authenticator) Metadata() http.Handler {
	if a.issuer == nil {
		return nil
	}
	return http.HandlerFunc(a.serveMetadata)
}

func (a *Authenticator) serveMetadata(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, metadataPrefix)
	path = strings.TrimSuffix(path, "/")
	if !ok || path != "" && path != endpoint && path != resourcePath(path) {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	doc := resourceMetadata{
		Resource: a.base(r) + resourcePath(path), Servers: []string{a.o.OAuth.Issuer},
		Methods: []string{"header"}, Name: "a2agate",
	}
	for _, s := range a.scopes {
		doc.Scopes = append(doc.Scopes, s.name)
	}
	body, err := json.Marshal(doc)
	if err != nil { // strings only: cannot happen
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(body) // a client that is gone needs no answer
}
