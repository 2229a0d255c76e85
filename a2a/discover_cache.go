package a2a

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultFresh is how long a card is fresh when the agent does not say.
	defaultFresh = 5 * time.Minute
	// maxFresh caps what an agent says: a card that changes must show within
	// the hour.
	maxFresh = time.Hour
)

// freshFor is how long an answer may be used without asking again
// (RFC 9111, 4.2): max-age less Age, else Expires, else a default.
func freshFor(header http.Header, now time.Time) time.Duration {
	lifetime, said := time.Duration(0), false
	for _, line := range header.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(name) {
			case "no-store", "no-cache":
				return 0
			case "max-age":
				seconds, err := strconv.Atoi(strings.Trim(value, `" `))
				if err != nil || seconds < 0 {
					seconds = 0 // what cannot be read counts as stale
				}
				lifetime, said = time.Duration(min(seconds, int(maxFresh/time.Second)))*time.Second, true
				lifetime -= age(header)
			}
		}
	}
	if !said && header.Get("Expires") != "" {
		said = true
		if at, err := http.ParseTime(header.Get("Expires")); err == nil {
			lifetime = at.Sub(now)
		}
	}
	if !said {
		return defaultFresh
	}
	return min(max(lifetime, 0), maxFresh)
}

func age(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(header.Get("Age")))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(maxFresh/time.Second))) * time.Second
}
