package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"a2agate/tools"
	"a2agate/translate"
)

// session is what a legacy client settled with initialize. It is carried by
// the session id itself, signed: nothing is stored, so a restart strands
// nobody, and an id that cannot be verified counts as absent. The zero session
// is that of a request without one.
type session struct {
	id       string
	revision translate.Revision
	client   tools.ClientCapabilities
}

// sessionTTL bounds how long a session id can be used.
const sessionTTL = 30 * 24 * time.Hour

const sessionPrefix = "v1."

// sessionBytes is the payload: revision, capabilities, expiry, nonce. The
// nonce tells two sessions apart that agree in everything else, which
// notifications/cancelled depends on.
const sessionBytes = 1 + 1 + 8 + 16

const (
	capForm = 1 << iota
	capURL
)

// sessions makes and reads session ids with one key.
type sessions struct{ key []byte }

// newSessions takes the configured key, or makes one that lasts as long as
// the process.
func newSessions(key []byte) sessions {
	if len(key) == 0 {
		key = make([]byte, 32)
		rand.Read(key) // never fails (crypto/rand)
	}
	return sessions{key: key}
}

// mint returns a new session id, visible ASCII (MCP 2025-11-25, transports).
func (s sessions) mint(principal string, rev translate.Revision, client tools.ClientCapabilities) string {
	var p [sessionBytes]byte
	p[0] = byte(revisionIndex(rev))
	if client.ElicitForm {
		p[1] |= capForm
	}
	if client.ElicitURL {
		p[1] |= capURL
	}
	binary.BigEndian.PutUint64(p[2:], uint64(time.Now().Add(sessionTTL).Unix()))
	rand.Read(p[10:])
	enc := base64.RawURLEncoding
	return sessionPrefix + enc.EncodeToString(p[:]) + "." + enc.EncodeToString(s.mac(principal, p[:]))
}

// read returns the session of an id that was minted here for this principal
// and has not expired; else the zero session.
func (s sessions) read(principal, id string) session {
	rest, ok := strings.CutPrefix(id, sessionPrefix)
	if !ok {
		return session{}
	}
	payload, tag, ok := strings.Cut(rest, ".")
	if !ok {
		return session{}
	}
	enc := base64.RawURLEncoding.Strict()
	p, err := enc.DecodeString(payload)
	if err != nil || len(p) != sessionBytes {
		return session{}
	}
	mac, err := enc.DecodeString(tag)
	if err != nil || !hmac.Equal(mac, s.mac(principal, p)) {
		return session{}
	}
	if time.Now().Unix() >= int64(binary.BigEndian.Uint64(p[2:])) || int(p[0]) >= len(supported) {
		return session{}
	}
	return session{
		id:       id,
		revision: supported[p[0]],
		client:   tools.ClientCapabilities{ElicitForm: p[1]&capForm != 0, ElicitURL: p[1]&capURL != 0},
	}
}

// mac signs the payload for a principal, which is bound without being in it.
func (s sessions) mac(principal string, payload []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte("a2agate session 1\n"))
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(principal)))
	h.Write(n[:])
	h.Write([]byte(principal))
	h.Write(payload)
	return h.Sum(nil)[:16]
}

// modernClient reads the capabilities that a modern request declares. An
// extension counts by its key; elicitation {} means form (MCP 2026-07-28,
// elicitation).
func modernClient(raw json.RawMessage) tools.ClientCapabilities {
	c := elicitation(raw)
	if ext, _ := lookup(raw, "extensions"); isObject(ext) {
		v, _ := lookup(ext, tasksExtension)
		c.Tasks = v != nil
	}
	return c
}

// legacyClient reads the capabilities of an initialize, as far as its
// revision has them.
func legacyClient(raw json.RawMessage, rev translate.Revision) tools.ClientCapabilities {
	if rev < translate.Rev20250618 {
		return tools.ClientCapabilities{}
	}
	c := elicitation(raw)
	if rev < translate.Rev20251125 {
		c = tools.ClientCapabilities{ElicitForm: c.ElicitForm || c.ElicitURL}
	}
	return c
}

func elicitation(caps json.RawMessage) (c tools.ClientCapabilities) {
	e, _ := lookup(caps, "elicitation")
	if !isObject(e) {
		return c
	}
	form, _ := lookup(e, "form")
	url, _ := lookup(e, "url")
	c.ElicitURL = isObject(url)
	c.ElicitForm = isObject(form) || !c.ElicitURL
	return c
}

// callKey names a running call of a legacy session; ids alone collide between
// clients.
type callKey struct{ principal, session, id string }

// running are the legacy calls that notifications/cancelled can reach, and
// the questions to legacy clients that wait for their answer.
type running struct {
	mu    sync.Mutex
	calls map[callKey]*runningCall
	asks  map[callKey]chan *Envelope
}

type runningCall struct{ cancel context.CancelFunc }

// add registers a call; the returned function takes it out again.
func (r *running) add(key callKey, cancel context.CancelFunc) (done func()) {
	call := &runningCall{cancel: cancel}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = make(map[callKey]*runningCall)
	}
	r.calls[key] = call
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.calls[key] == call {
			delete(r.calls, key)
		}
	}
}

// cancel ends a call, if it is still there.
func (r *running) cancel(key callKey) {
	r.mu.Lock()
	call := r.calls[key]
	r.mu.Unlock()
	if call != nil {
		call.cancel()
	}
}

// ask registers a question; its answer comes on the channel, at most once.
func (r *running) ask(key callKey) (answer <-chan *Envelope, done func()) {
	c := make(chan *Envelope, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asks == nil {
		r.asks = make(map[callKey]chan *Envelope)
	}
	r.asks[key] = c
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.asks, key)
	}
}

// answer delivers a response to the question it answers, if it waits.
func (r *running) answer(key callKey, e *Envelope) {
	r.mu.Lock()
	c := r.asks[key]
	delete(r.asks, key)
	r.mu.Unlock()
	if c != nil {
		c <- e
	}
}

// idKey makes a map key of a raw id: 1 and "1" differ, "a" and "\u0061" do
// not.
func idKey(raw json.RawMessage) string {
	if s, ok := stringValue(raw); ok {
		return "s" + s
	}
	return "i" + string(raw)
}
