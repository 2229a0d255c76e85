package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// text is a string.
type text struct {
	// expand says that ${env:…} and ${file:…} stand for something here.
	expand bool
	// secret keeps the value out of messages.
	secret bool
	// path says that the text is a path, relative to the configuration's; file
	// that the file must be readable, and is watched.
	path, file bool
	// check returns what is wrong with the expanded text and the remedy, ""
	// when nothing is; may be nil. change, which runs after, may rewrite it.
	check  func(string) string
	change func(string) string
	// pattern is what check accepts of a text without ${…}, as a regular
	// expression for JSON Schema; "" for anything but the empty text.
	pattern string
	empty   bool // "" is allowed
}

func (t text) read(c *checker, at string, n *node, dst *string) {
	if n.kind != isString && t.secret {
		c.fail(n, at, "the value is not a string; put it in quotes")
		return
	}
	if !c.is(at, n, isString) {
		return
	}
	s, ok := t.value(c, at, n)
	if !ok {
		return
	}
	if wrong := t.wrong(n, s); wrong != "" {
		c.fail(n, at, wrong)
		return
	}
	if t.path || t.file {
		s = c.resolve(s)
	}
	if t.file {
		if _, err := c.content(s); err != nil {
			c.fail(n, at, err.Error())
			return
		}
	}
	if t.change != nil {
		s = t.change(s)
	}
	*dst = s
}

// value is the text with everything in it expanded.
func (t text) value(c *checker, at string, n *node) (string, bool) {
	if t.expand {
		return c.expand(at, n)
	}
	if strings.Contains(n.text, "${env:") || strings.Contains(n.text, "${file:") {
		c.fail(n, at, quote(n.text)+" is not expanded here; write the value itself")
		return "", false
	}
	return n.text, true
}

// wrong says what is wrong with the value s of n, "" when nothing is.
func (t text) wrong(n *node, s string) string {
	switch {
	case s == "" && t.empty:
		return ""
	case n.text == "":
		return "empty; give a value or remove the key"
	case s == "":
		return quote(n.text) + " stands for an empty text; set it, or remove the key"
	case t.check == nil:
		return ""
	}
	wrong := t.check(s)
	switch {
	case wrong == "":
		return ""
	case t.secret:
		return "the value " + wrong
	}
	// As written: what was expanded may be a secret.
	return quote(n.text) + " " + wrong
}

func (t text) schema() *schema {
	s := &schema{Type: "string"}
	switch {
	case t.pattern != "" && t.expand:
		s.Pattern = `\$\{|` + t.pattern
	case t.pattern != "":
		s.Pattern = t.pattern
	case !t.empty:
		one := 1
		s.MinLength = &one
	}
	return s
}

// secretText is a text that is read into a Secret.
type secretText struct{ text }

func (t secretText) read(c *checker, at string, n *node, dst *Secret) {
	var s string
	t.text.secret = true
	t.text.read(c, at, n, &s)
	*dst = NewSecret(s)
}

// choice is a string out of a few.
type choice[T ~string] []T

func (o choice[T]) words() []string {
	words := make([]string, len(o))
	for i, w := range o {
		words[i] = string(w)
	}
	return words
}

func (o choice[T]) read(c *checker, at string, n *node, dst *T) {
	if n.kind == isString && slices.Contains(o, T(n.text)) {
		*dst = T(n.text)
		return
	}
	words := o.words()
	remedy := "write one of " + strings.Join(words, ", ")
	if n.kind != isString {
		c.fail(n, at, fmt.Sprintf("%s is not a string; %s", c.excerpt(n), remedy))
		return
	}
	if near := nearest(n.text, words); near != "" {
		remedy += "; did you mean " + quote(near) + "?"
	}
	c.fail(n, at, fmt.Sprintf("%s is not known; %s", quote(n.text), remedy))
}

func (o choice[T]) schema() *schema { return &schema{Type: "string", Enum: o.words()} }

// boolean is true or false.
type boolean struct{}

func (boolean) read(c *checker, at string, n *node, dst *bool) {
	if c.is(at, n, isBool) {
		*dst = n.truth
	}
}

func (boolean) schema() *schema { return &schema{Type: "boolean"} }

// integer is a whole number between min and max.
type integer[T int | int64] struct{ min, max T }

func (i integer[T]) read(c *checker, at string, n *node, dst *T) {
	if !c.is(at, n, isNumber) {
		return
	}
	f, err := strconv.ParseFloat(string(n.number), 64)
	if err != nil || f != math.Trunc(f) {
		c.fail(n, at, fmt.Sprintf("%s is not a whole number; give %d to %d", cut(string(n.number)), i.min, i.max))
		return
	}
	if f < float64(i.min) || f > float64(i.max) {
		c.fail(n, at, fmt.Sprintf("%s is out of range; give %d to %d", cut(string(n.number)), i.min, i.max))
		return
	}
	*dst = T(f)
}

func (i integer[T]) schema() *schema {
	low, high := float64(i.min), float64(i.max)
	return &schema{Type: "integer", Minimum: &low, Maximum: &high}
}

// rate is a number from 0 on, fractions allowed.
type rate struct{ max float64 }

func (r rate) read(c *checker, at string, n *node, dst *float64) {
	if !c.is(at, n, isNumber) {
		return
	}
	f, err := strconv.ParseFloat(string(n.number), 64)
	if err != nil || f < 0 || f > r.max {
		c.fail(n, at, fmt.Sprintf("%s is out of range; give 0 (no bound) to %g", cut(string(n.number)), r.max))
		return
	}
	*dst = f
}

func (r rate) schema() *schema {
	low := 0.0
	return &schema{Type: "number", Minimum: &low, Maximum: &r.max}
}

// durationPattern is what time.ParseDuration takes.
const durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// span is a duration as a Go string.
type span struct{ min, max time.Duration }

func (s span) read(c *checker, at string, n *node, dst *time.Duration) {
	const remedy = `write a duration with its unit, such as "90s", "15m" or "1h30m"`
	if n.kind != isString {
		c.fail(n, at, fmt.Sprintf("%s is not a string; %s", c.excerpt(n), remedy))
		return
	}
	d, err := time.ParseDuration(n.text)
	if err != nil {
		c.fail(n, at, quote(n.text)+" is not a duration; "+remedy)
		return
	}
	if d < s.min || d > s.max {
		c.fail(n, at, fmt.Sprintf("%s is out of range; give %s to %s", quote(n.text), period(s.min), period(s.max)))
		return
	}
	*dst = d
}

// period is a duration in the words of the file: 24h, not 24h0m0s.
func period(d time.Duration) string {
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

func (s span) schema() *schema { return &schema{Type: "string", Pattern: durationPattern} }

// count is a duration as a whole number of units.
type count struct {
	unit     time.Duration
	min, max int64
}

func (m count) read(c *checker, at string, n *node, dst *time.Duration) {
	var i int64
	integer[int64]{m.min, m.max}.read(c, at, n, &i)
	*dst = time.Duration(i) * m.unit
}

func (m count) schema() *schema { return integer[int64]{m.min, m.max}.schema() }

// raw is JSON that is kept as it stands, comments taken out.
type raw struct {
	check func(json.RawMessage) string // as in text
}

func (r raw) read(c *checker, at string, n *node, dst *json.RawMessage) {
	if !c.is(at, n, isObject) {
		return
	}
	var b bytes.Buffer
	if err := json.Compact(&b, c.json[n.start:n.end]); err != nil {
		c.fail(n, at, "is not JSON") // it was parsed: not reached
		return
	}
	if wrong := r.check(b.Bytes()); wrong != "" {
		c.fail(n, at, wrong)
		return
	}
	*dst = b.Bytes()
}

func (r raw) schema() *schema { return &schema{Type: "object"} }

// cut shortens a number or word for a message.
func cut(s string) string {
	if len(s) <= quotedLen {
		return s
	}
	i := quotedLen
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return s[:i] + "…"
}
