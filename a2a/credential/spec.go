package credential

import (
	"net/http"
	"strconv"
)

// Spec is an agent's credential as configured. Only the fields of its Type
// are read.
type Spec struct {
	// Type is none (or empty), bearer, apikey, basic, oauth2, az_cli or mtls.
	Type string

	// Token is the token of bearer.
	Token Secret

	// Key is the key of apikey. Header is short for In "header" and Name; with
	// all three empty the card's apiKey scheme says where, else X-API-Key.
	Key    Secret
	Header string
	In     string
	Name   string

	// Username and Password are those of basic.
	Username string
	Password Secret

	// ClientID, ClientSecret, TokenURL, Scopes and AuthStyle are those of
	// oauth2. TokenURL may be "fromCard"; AuthStyle is "", header or params.
	ClientID     string
	ClientSecret Secret
	TokenURL     string
	Scopes       []string
	AuthStyle    string

	// Resource is that of az_cli; empty takes it from the card's scopes.
	Resource string

	// CertFile, KeyFile, CAFile and ServerName are those of mtls.
	CertFile   string
	KeyFile    string
	CAFile     string
	ServerName string

	// HTTP reaches the token endpoint; nil for a client of its own. Its
	// redirects are not followed in any case. Not part of a configuration.
	HTTP *http.Client
	// AzPath is the Azure CLI; empty for az in PATH. Not part of a
	// configuration.
	AzPath string
}

// FromConfig makes the credential that spec asks for; nil for none. An error
// is an *Error that names every field at fault, and never its secret.
func FromConfig(spec Spec) (Authorizer, error) {
	var (
		made Authorizer
		err  error
	)
	switch spec.Type {
	case "", KindNone:
		return nil, nil
	case KindBearer:
		made, err = NewBearer(spec.Token)
	case KindAPIKey:
		made, err = apiKeyFromConfig(spec)
	case KindBasic:
		made, err = NewBasic(spec.Username, spec.Password)
	case KindOAuth2:
		made, err = NewOAuth2(spec)
	case KindAzCLI:
		made, err = NewAzCLI(spec.Resource, spec.AzPath)
	case KindMTLS:
		made, err = NewMTLS(spec.CertFile, spec.KeyFile, spec.CAFile, spec.ServerName)
	default:
		err = &Error{Message: "type " + quote(spec.Type) + " is none of none, bearer, apikey, basic, oauth2, az_cli, mtls"}
	}
	if err != nil {
		return nil, err // not made: a nil pointer inside it would not compare to nil
	}
	return made, nil
}

func apiKeyFromConfig(spec Spec) (*APIKey, error) {
	in, name := spec.In, spec.Name
	if spec.Header != "" {
		if (in != "" && in != InHeader) || (name != "" && name != spec.Header) {
			return nil, errSpec(KindAPIKey, []string{"header and in/name contradict each other: keep one of them"})
		}
		in, name = InHeader, spec.Header
	}
	return NewAPIKey(spec.Key, in, name)
}

func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}
