package a2a

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// cardPlace is where an agent and its card are, by its configuration.
type cardPlace struct {
	// agent is the agent's own address: its origin gets credentials, relative
	// urls are joined to it.
	agent *url.URL
	// call is the address of the agent as configured, to be called when the
	// card names none or its own fails.
	call string
	// candidates are the addresses of the card, in the order to try.
	candidates []cardCandidate
}

// cardCandidate is one address that may have the card.
type cardCandidate struct {
	url string
	// legacy marks the name of 0.2, /.well-known/agent.json.
	legacy bool
}

// locate reads the addresses of a configuration (design section 6): an
// explicit cardUrl, or a url that names a JSON file, is the only candidate; a
// cardPath comes first; then the two well-known names under the url's path,
// then those at its origin (specification 8.2).
func locate(rawURL, cardURL, cardPath string) (cardPlace, error) {
	if rawURL != "" && cardURL != "" {
		return cardPlace{}, fmt.Errorf("url and cardUrl exclude each other: keep one of them")
	}
	if rawURL == "" && isAbsoluteHTTP(cardPath) {
		cardURL, cardPath = cardPath, ""
	}
	if cardURL != "" {
		return locateCard("cardUrl", cardURL)
	}
	if rawURL == "" {
		return cardPlace{}, fmt.Errorf("url is missing: give the agent's address, or the card's as cardUrl")
	}
	u, err := parseHTTPURL("url", rawURL)
	if err != nil {
		return cardPlace{}, err
	}
	base, path, query := splitURL(strings.TrimSpace(rawURL))
	if cardPath == "" && strings.HasSuffix(strings.ToLower(path), ".json") {
		return locateCard("url", rawURL)
	}
	place := cardPlace{agent: u, call: base + path + query}
	if cardPath != "" {
		if err := place.addExplicit(base, path, query, strings.TrimSpace(cardPath)); err != nil {
			return cardPlace{}, err
		}
	}
	for _, at := range []string{base + strings.TrimRight(path, "/"), base} {
		place.add(at+wellKnownCard+query, false)
		place.add(at+wellKnownLegacyCard+query, true)
	}
	return place, nil
}

// locateCard is for an agent of which only the card's address is known.
func locateCard(field, cardURL string) (cardPlace, error) {
	u, err := parseHTTPURL(field, cardURL)
	if err != nil {
		return cardPlace{}, err
	}
	place := cardPlace{}
	place.add(u.String(), strings.HasSuffix(u.Path, wellKnownLegacyCard))
	base := agentBase(u.String())
	if place.agent, err = url.Parse(base); err != nil {
		return cardPlace{}, fmt.Errorf("%s is not a URL", field)
	}
	place.call = base
	return place, nil
}

// addExplicit adds a configured cardPath: a URL as it stands, or a path under
// the agent's address; one with a leading slash may also be meant from the
// origin.
func (p *cardPlace) addExplicit(base, path, query, cardPath string) error {
	if isAbsoluteHTTP(cardPath) {
		u, err := parseHTTPURL("cardPath", cardPath)
		if err != nil {
			return err
		}
		p.add(u.String(), false)
		return nil
	}
	if strings.Contains(cardPath, "://") {
		return fmt.Errorf("cardPath: %q is neither a path nor an http(s) URL", plainLine(cardPath, 200))
	}
	if _, err := url.Parse(base + "/" + cardPath); err != nil {
		return fmt.Errorf("cardPath: %q is not a valid path", plainLine(cardPath, 200))
	}
	cardPath, _, _ = strings.Cut(cardPath, "#")
	if strings.Contains(cardPath, "?") {
		query = ""
	}
	p.add(base+strings.TrimRight(path, "/")+"/"+strings.TrimLeft(cardPath, "/")+query, false)
	if strings.HasPrefix(cardPath, "/") {
		p.add(base+cardPath+query, false)
	}
	return nil
}

func (p *cardPlace) add(candidate string, legacy bool) {
	for _, c := range p.candidates {
		if c.url == candidate {
			return
		}
	}
	p.candidates = append(p.candidates, cardCandidate{url: candidate, legacy: legacy})
}

func isAbsoluteHTTP(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// CardCandidates returns the addresses at which the card of an agent is looked
// for, in order.
func CardCandidates(cfg AgentConfig) ([]string, error) {
	place, err := locate(cfg.URL, cfg.CardURL, cfg.CardPath)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range place.candidates {
		out = append(out, c.url)
	}
	return out, nil
}

// CardAttempt is one request for a card and what came of it, for diagnosis.
type CardAttempt struct {
	// URL is the candidate, the values of its query hidden.
	URL string
	// Status is the HTTP status, 0 without an answer.
	Status      int
	ContentType string
	// Authorized says that the credential was sent along.
	Authorized bool
	// Problem says in plain words why this is no card; "" when it is.
	Problem string

	state AgentState
	err   *Error
}

// rank orders the reasons of failed attempts by how much they tell.
func (t CardAttempt) rank() int {
	switch t.state {
	case AgentAuthRequired:
		return 5
	case AgentInvalidCard:
		return 4
	case AgentBlockedOrigin:
		return 3
	case AgentDown:
		return 2
	}
	if t.Status != http.StatusNotFound && t.Status != http.StatusMethodNotAllowed {
		return 1
	}
	return 0
}
