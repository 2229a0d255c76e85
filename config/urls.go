package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// FromURLs makes a configuration of the arguments of serve, each URL or
// name=URL. Without a name the alias is the last segment of the URL's path,
// else the first label of its host, or, where the host is an address or
// localhost, which say little, host and port; when that is taken, a hash of
// the URL goes behind it, so that an alias depends on no order. A URL of a well-known card
// counts as cardUrl. The error is an *Error with every problem.
func FromURLs(args []string) (*Config, error) {
	var problems []Problem
	agents := make([]argument, 0, len(args))
	seen := make(map[string]int)
	for i, arg := range args {
		a, wrong := readArgument(arg)
		at := fmt.Sprintf("argument %d", i+1)
		if wrong == "" {
			if first, twice := seen[a.url]; twice {
				wrong = fmt.Sprintf("%s is argument %d too; remove one", quote(a.url), first)
			}
			seen[a.url] = i + 1
		}
		if wrong != "" {
			problems = append(problems, Problem{Path: at, Message: wrong})
			continue
		}
		agents = append(agents, a)
	}
	if len(args) == 0 {
		problems = append(problems, Problem{Message: "no agent is given; name its URL, such as a2agate serve https://agents.example.com/billing"})
	}
	problems = append(problems, nameAll(agents)...)
	if len(problems) > 0 {
		return nil, &Error{Problems: problems}
	}
	return Parse("", argumentFile(agents), nil, nil)
}

// argument is one agent of the command line.
type argument struct {
	alias string
	named bool
	url   string
	card  bool
}

// name=URL: what an alias may not be is caught by the check, not taken for a
// part of the URL.
var namedURL = regexp.MustCompile(`(?i)^([^=/]*)=(https?:.*)$`)

func readArgument(arg string) (a argument, wrong string) {
	a.url = arg
	if m := namedURL.FindStringSubmatch(arg); m != nil {
		a.alias, a.named, a.url = m[1], true, m[2]
		if !isAlias(a.alias) {
			return a, quote(a.alias) + " is not an alias; " + aliasRule
		}
	}
	if wrong := urlRule(a.url); wrong != "" {
		return a, quote(a.url) + " " + wrong
	}
	u, err := url.Parse(a.url)
	if err != nil {
		return a, quote(a.url) + " is not a URL"
	}
	for _, name := range []string{"/.well-known/agent-card.json", "/.well-known/agent.json"} {
		if rest, ok := strings.CutSuffix(u.Path, name); ok {
			a.card, u.Path = true, rest
		}
	}
	if !a.named {
		a.alias = aliasOf(u)
	}
	return a, ""
}

var notAlias = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// aliasMax leaves room for a hash behind a made-up alias.
const aliasMax = 64 - 1 - hashLen

// aliasOf makes an alias of a URL.
func aliasOf(u *url.URL) string {
	last := ""
	if p := path.Clean("/" + u.Path); p != "/" {
		last = path.Base(p)
	}
	if last == "" {
		last = u.Hostname()
		label, _, _ := strings.Cut(last, ".")
		switch {
		case strings.EqualFold(last, "localhost"), strings.Trim(label, "0123456789") == "", strings.Contains(last, ":"):
			last += "-" + u.Port()
		default:
			last = label
		}
	}
	a := strings.Trim(notAlias.ReplaceAllString(last, "-"), "-")
	if len(a) > aliasMax {
		a = a[:aliasMax]
	}
	if a == "" {
		a = "agent"
	}
	return a
}

// hashLen is how many hexadecimal digits make an alias unique.
const hashLen = 6

// nameAll puts the hash behind made-up aliases that are not the only ones, and
// reports given ones that are not.
func nameAll(agents []argument) []Problem {
	count := make(map[string]int)
	for _, a := range agents {
		count[a.alias]++
	}
	var problems []Problem
	given := make(map[string]bool)
	for i := range agents {
		a := &agents[i]
		if a.named {
			if given[a.alias] {
				problems = append(problems, Problem{Message: fmt.Sprintf("the alias %s is given twice; rename one", quote(a.alias))})
			}
			given[a.alias] = true
		} else if count[a.alias] > 1 {
			sum := sha256.Sum256([]byte(a.url))
			a.alias += "-" + hex.EncodeToString(sum[:])[:hashLen]
		}
	}
	return problems
}

// argumentFile is the file that says the same as the arguments.
func argumentFile(agents []argument) []byte {
	var b strings.Builder
	b.WriteString(`{"agents":{`)
	for i, a := range agents {
		if i > 0 {
			b.WriteByte(',')
		}
		key := "url"
		if a.card {
			key = "cardUrl"
		}
		// A shell has expanded what there was to expand.
		value, _ := json.Marshal(strings.ReplaceAll(a.url, "${", "$${"))
		fmt.Fprintf(&b, `%q:{%q:%s}`, a.alias, key, value)
	}
	b.WriteString(`}}`)
	return []byte(b.String())
}
