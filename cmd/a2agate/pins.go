package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"a2agate/a2a"
	"a2agate/config"
)

// pinName is the file that keeps what was accepted, beside the configuration.
const pinName = ".a2agate-pins.json"

// maxPins bounds the file, in bytes.
const maxPins = 64 << 20

// pins keeps the accepted cards of agents with pin. The first card of an agent
// is accepted as it comes; a later one that says other things to a model is
// held back until it is accepted.
type pins struct {
	// path is the file, "" keeps everything in memory. Assigned once.
	path string
	log  *slog.Logger

	mu    sync.Mutex // guards the rest
	cards map[string]*pinnedCard
	// round counts the changes, so that views are made anew.
	round int
	// told has the digests of the cards that were logged as held back.
	told map[string]string
}

// pinnedCard is one accepted card.
type pinnedCard struct {
	// SHA256 is the digest of what the card says to a model.
	SHA256   string    `json:"sha256"`
	Accepted time.Time `json:"accepted"`
	// Card is the card as the agent served it.
	Card string `json:"card"`

	card *a2a.Card
}

// pinPath is where the pins of a configuration are, "" for one without a file.
func pinPath(cfg *config.Config) string {
	if cfg.Path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(cfg.Path), pinName)
}

// newPins reads the pins of a configuration.
func newPins(path string, log *slog.Logger) (*pins, error) {
	p := &pins{path: path, log: log, cards: map[string]*pinnedCard{}, told: map[string]string{}}
	if path == "" {
		return p, nil
	}
	return p, p.read()
}

// read takes over what the file says. On an error everything stays.
func (p *pins) read() error {
	if p.path == "" {
		return nil
	}
	cards, err := readPins(p.path)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for alias, now := range cards {
		if was := p.cards[alias]; was != nil && was.SHA256 == now.SHA256 && was.Card == now.Card {
			cards[alias] = was // the same card stays the same pointer
		}
	}
	if !maps.Equal(p.cards, cards) {
		p.cards = cards
		p.round++
	}
	return nil
}

func readPins(path string) (map[string]*pinnedCard, error) {
	cards := map[string]*pinnedCard{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cards, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the accepted cards cannot be read: %w", err)
	}
	if len(data) > maxPins {
		return nil, fmt.Errorf("%s is larger than %d bytes; remove it to accept all cards anew", path, maxPins)
	}
	if err := json.Unmarshal(data, &cards); err != nil {
		return nil, fmt.Errorf("%s is broken (%w); correct it, or remove it to accept all cards anew", path, err)
	}
	for alias, c := range cards {
		if c == nil {
			delete(cards, alias)
			continue
		}
		if c.card, err = a2a.ParseCard([]byte(c.Card)); err != nil {
			return nil, fmt.Errorf("%s: the card of %q %w; remove the entry to accept the agent's card anew", path, alias, err)
		}
	}
	return cards, nil
}

// accept makes a card the accepted one of an agent and writes the file.
func (p *pins) accept(alias string, card *a2a.Card) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := &pinnedCard{SHA256: offerDigest(card), Accepted: time.Now().UTC().Truncate(time.Second), Card: string(card.Raw), card: card}
	p.cards[alias] = now
	p.round++
	if p.path == "" {
		return nil
	}
	// Another process may have written since: only this agent is changed.
	cards, err := readPins(p.path)
	if err != nil {
		return err
	}
	cards[alias] = now
	data, err := json.MarshalIndent(cards, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(p.path, append(data, '\n'))
}

// writeWhole replaces a file in one step.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use
	}
	return err
}

// accepted returns the accepted card of an agent, and the round of the answer.
func (p *pins) accepted(alias string) (*pinnedCard, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cards[alias], p.round
}

// view returns what is shown of an agent that serves this card: the card, or
// the accepted one and a note that the new one is held back.
func (p *pins) view(alias string, card *a2a.Card) (shown *a2a.Card, note string, round int) {
	pinned, round := p.accepted(alias)
	if pinned == nil {
		if err := p.accept(alias, card); err != nil {
			p.log.Warn("the accepted card is not kept over a restart", "agent", alias, "err", err)
		}
		_, round = p.accepted(alias)
		return card, "", round
	}
	if pinned.SHA256 == offerDigest(card) {
		return card, "", round
	}
	changes := strings.Join(offerChanges(pinned.card, card), ", ")
	if p.tell(alias, offerDigest(card)) {
		p.log.Warn("agent card held back", "agent", alias, "changed", changes, "remedy", "a2agate accept "+alias)
	}
	return pinned.card, fmt.Sprintf("the agent's card has changed (%s) and is held back: the accepted one is shown until 'a2agate accept %s'", changes, alias), round
}

// tell reports whether a held-back card has not been logged yet.
func (p *pins) tell(alias, digest string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told[alias] == digest {
		return false
	}
	p.told[alias] = digest
	return true
}

// skillWords are what a skill says to a model.
type skillWords struct {
	ID, Name, Description string
	Tags, Examples        []string
}

func wordsOf(s a2a.Skill) skillWords {
	return skillWords{s.ID, s.Name, s.Description, s.Tags, s.Examples}
}

// offerDigest is the digest of what a card says to a model: names,
// descriptions, skills and their schemas. Addresses, credentials and versions
// are not part of it.
func offerDigest(card *a2a.Card) string {
	words := struct {
		Name, Description string
		Skills            []skillWords
		Schemas           []byte
	}{card.Name, card.Description, nil, schemasOf(card)}
	for _, s := range card.Skills {
		words.Skills = append(words.Skills, wordsOf(s))
	}
	data, err := json.Marshal(words)
	if err != nil {
		return "" // texts have an encoding
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// schemasOf are the schemas that a card declares, without blanks.
func schemasOf(card *a2a.Card) []byte {
	ext, ok := card.Extension(speaks[0])
	if !ok {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, ext.Params) != nil {
		return ext.Params
	}
	return b.Bytes()
}

// offerChanges names what differs between two cards.
func offerChanges(was, now *a2a.Card) []string {
	var list []string
	if was.Name != now.Name {
		list = append(list, "name")
	}
	if was.Description != now.Description {
		list = append(list, "description")
	}
	before := map[string]skillWords{}
	for _, s := range was.Skills {
		before[s.ID] = wordsOf(s)
	}
	for _, s := range now.Skills {
		old, known := before[s.ID]
		delete(before, s.ID)
		switch words := wordsOf(s); {
		case !known:
			list = append(list, fmt.Sprintf("skill %q is new", oneLine(s.ID)))
		case old.Name != words.Name || old.Description != words.Description || !slices.Equal(old.Tags, words.Tags) || !slices.Equal(old.Examples, words.Examples):
			list = append(list, fmt.Sprintf("skill %q says something else", oneLine(s.ID)))
		}
	}
	for _, s := range was.Skills {
		if _, gone := before[s.ID]; gone {
			list = append(list, fmt.Sprintf("skill %q is gone", oneLine(s.ID)))
		}
	}
	if !bytes.Equal(schemasOf(was), schemasOf(now)) {
		list = append(list, "schemas")
	}
	if len(list) == 0 {
		list = []string{"order of skills"}
	}
	return list
}

// shownAgent is an agent as the tools see it: with the card that was accepted
// where it is pinned, and, until it has a card of its own, with the card of the
// agent whose place it takes.
type shownAgent struct {
	*a2a.Agent
	alias string
	pins  *pins // nil where the agent is not pinned
	// before is shown while the agent has not been looked for yet.
	before *a2a.Card

	// mu guards the last view, which holds while the card and the pins do.
	mu    sync.Mutex
	made  bool
	of    *a2a.Card
	round int
	shown *a2a.Card
	note  string
}

func newShownAgent(agent *a2a.Agent, cfg config.Agent, p *pins, before *member) *shownAgent {
	s := &shownAgent{Agent: agent, alias: cfg.Alias}
	if cfg.Pin {
		s.pins = p
	}
	if before != nil {
		s.before = before.shown.Card()
	}
	return s
}

// Card returns the card to show, nil before one is known.
func (s *shownAgent) Card() *a2a.Card {
	card, _ := s.view(s.Agent.Card())
	if card == nil && s.Agent.Status().State == a2a.AgentConnecting {
		return s.before
	}
	return card
}

// FetchCard returns the card to show, once the agent's own is known.
func (s *shownAgent) FetchCard(ctx context.Context) (*a2a.Card, error) {
	card, err := s.Agent.FetchCard(ctx)
	if err != nil {
		return nil, err
	}
	card, _ = s.view(card)
	return card, nil
}

// Status returns the agent's state, with a note where its card is held back.
func (s *shownAgent) Status() a2a.AgentStatus {
	status := s.Agent.Status()
	if _, note := s.view(s.Agent.Card()); note != "" {
		status.Notes = append(status.Notes, note)
	}
	return status
}

func (s *shownAgent) view(card *a2a.Card) (*a2a.Card, string) {
	if s.pins == nil || card == nil {
		return card, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, round := s.pins.accepted(s.alias); !s.made || s.of != card || s.round != round {
		s.shown, s.note, s.round = s.pins.view(s.alias, card)
		s.of, s.made = card, true
	}
	return s.shown, s.note
}
