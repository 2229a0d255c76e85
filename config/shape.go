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

// shape is what a value may look like: it checks and reads one into a T, and
// describes itself as a JSON Schema.
type shape[T any] interface {
	// read reports what is wrong with n, and otherwise sets dst.
	read(c *checker, at string, n *node, dst *T)
	schema() *schema
}

// property is one key of an object that is read into a T.
type property[T any] struct {
	key, doc string
	// initial is the JSON that stands for an absent key, "" for none.
	initial string
	// otherwise is the JSON of a default that a check fills in, "" for none.
	otherwise string
	// example is JSON for the reference page, "" for none.
	example  string
	required string // why the key is needed, "" when it is not
	read     func(c *checker, at string, n *node, dst *T)
	schema   func() *schema
}

// prop declares a key whose value of shape s lands where field points.
func prop[T, F any](key string, s shape[F], field func(*T) *F, doc string) property[T] {
	return property[T]{
		key: key, doc: doc, schema: s.schema,
		read: func(c *checker, at string, n *node, dst *T) { s.read(c, at, n, field(dst)) },
	}
}

func (p property[T]) byDefault(json string) property[T] { p.initial = json; return p }
func (p property[T]) orElse(json string) property[T]    { p.otherwise = json; return p }
func (p property[T]) like(json string) property[T]      { p.example = json; return p }
func (p property[T]) needed(why string) property[T]     { p.required = why; return p }

// object is an object with known keys.
type object[T any] struct {
	properties []property[T]
	// ignored are keys that are read by others.
	ignored []string
	// check looks at the whole object after its keys; may be nil.
	check func(c *checker, at string, n *node, dst *T)
	// extra says in JSON Schema what check says in Go, as far as it can.
	extra func(*schema)
}

func (o object[T]) keys() []string {
	var keys []string
	for _, p := range o.properties {
		keys = append(keys, p.key)
	}
	return append(keys, o.ignored...)
}

func (o object[T]) read(c *checker, at string, n *node, dst *T) {
	if !c.is(at, n, isObject) {
		return
	}
	known := o.keys()
	for _, m := range n.members {
		if !slices.Contains(known, m.key) {
			c.failAt(m.start, child(at, m.key), "unknown key; "+didYouMean(m.key, known))
		}
	}
	for _, p := range o.properties {
		v := n.get(p.key)
		switch {
		case v != nil:
			p.read(c, child(at, p.key), v, dst)
		case p.initial != "":
			p.read(c, child(at, p.key), c.builtin(n, p.initial), dst)
		case p.required != "":
			c.fail(n, child(at, p.key), "missing; "+p.required)
		}
	}
	if o.check != nil {
		o.check(c, at, n, dst)
	}
}

func (o object[T]) schema() *schema {
	s := &schema{Type: "object", AdditionalProperties: no()}
	for _, p := range o.properties {
		ps := p.schema()
		ps.Description = p.doc
		if shown := p.initial + p.otherwise; shown != "" && shown != "{}" {
			ps.Default = json.RawMessage(shown)
		}
		if p.example != "" {
			ps.Examples = []json.RawMessage{json.RawMessage(p.example)}
		}
		s.Properties = append(s.Properties, named{p.key, ps})
		if p.required != "" {
			s.Required = append(s.Required, p.key)
		}
	}
	for _, key := range o.ignored {
		s.Properties = append(s.Properties, named{key, &schema{Type: "string", Description: "For editors; not read."}})
	}
	if o.extra != nil {
		o.extra(s)
	}
	return s
}

// dictionary is an object with free keys; it is read into a list that keeps
// the order of the file.
type dictionary[T any] struct {
	elem shape[T]
	name func(*T) *string // where the key goes
	// pattern is the regular expression of keys; noun and rule are for people.
	pattern, noun, rule string
	valid               func(key string) bool
	min                 int
	minRule             string
}

func (d dictionary[T]) read(c *checker, at string, n *node, dst *[]T) {
	if !c.is(at, n, isObject) {
		return
	}
	list := make([]T, 0, len(n.members))
	for _, m := range n.members {
		path := child(at, m.key)
		if !d.valid(m.key) {
			c.failAt(m.start, path, fmt.Sprintf("%s is not %s; %s", quote(m.key), d.noun, d.rule))
		}
		var v T
		*d.name(&v) = m.key
		d.elem.read(c, path, m.value, &v)
		list = append(list, v)
	}
	if len(list) < d.min {
		c.fail(n, at, d.minRule)
	}
	*dst = list
}

func (d dictionary[T]) schema() *schema {
	s := &schema{Type: "object", AdditionalProperties: d.elem.schema(), PropertyNames: &schema{Pattern: d.pattern}}
	if d.min > 0 {
		s.MinProperties = &d.min
	}
	return s
}

// list is a list of equal values. A value that occurs twice is refused where
// unique is set.
type list[T any] struct {
	elem    shape[T]
	unique  func(T) string // a text that is equal for equal values; nil allows them
	min     int
	minRule string
}

func (l list[T]) read(c *checker, at string, n *node, dst *[]T) {
	if !c.is(at, n, isList) {
		return
	}
	out := make([]T, 0, len(n.items))
	seen := make(map[string]int, len(n.items))
	for i, v := range n.items {
		var e T
		failed := len(c.problems)
		l.elem.read(c, item(at, i), v, &e)
		if l.unique != nil && failed == len(c.problems) {
			id := l.unique(e)
			if first, twice := seen[id]; twice {
				c.fail(v, item(at, i), fmt.Sprintf("the same as %s; remove one", item(at, first)))
			}
			seen[id] = i
		}
		out = append(out, e)
	}
	if len(out) < l.min {
		c.fail(n, at, l.minRule)
	}
	*dst = out
}

func (l list[T]) schema() *schema {
	s := &schema{Type: "array", Items: l.elem.schema(), UniqueItems: l.unique != nil}
	if l.min > 0 {
		s.MinItems = &l.min
	}
	return s
}

// part reads a value into one field of a T.
type part[T, F any] struct {
	shape[F]
	field func(*T) *F
}

func (p part[T, F]) read(c *checker, at string, n *node, dst *T) {
	p.shape.read(c, at, n, p.field(dst))
}

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

// durationPattern is what time.ParseDuration takes, signs left out.
const durationPattern = `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

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

// optional reads into a pointer that stays nil while the key is absent.
type optional[T any] struct{ shape[T] }

func (o optional[T]) read(c *checker, at string, n *node, dst **T) {
	var v T
	o.shape.read(c, at, n, &v)
	*dst = &v
}

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
