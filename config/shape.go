package config

import (
	"encoding/json"
	"fmt"
	"slices"
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
	// foreign are keys of other programs' files, with what to say of each.
	foreign map[string]string
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
		if hint, ok := o.foreign[m.key]; ok {
			c.failAt(m.start, child(at, m.key), hint)
		} else if !slices.Contains(known, m.key) {
			c.failAt(m.start, child(at, m.key), "unknown key; "+didYouMean(m.key, known))
		}
	}
	for _, key := range o.ignored {
		if v := n.get(key); v != nil {
			c.is(child(at, key), v, isString)
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
	// form is how to write one, for who wrote something else.
	form string
}

func (d dictionary[T]) read(c *checker, at string, n *node, dst *[]T) {
	if n.kind != isObject && d.form != "" {
		c.fail(n, at, fmt.Sprintf("%s is not %s; write %s", c.excerpt(n), isObject, d.form))
		return
	}
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

// optional reads into a pointer that stays nil while the key is absent.
type optional[T any] struct{ shape[T] }

func (o optional[T]) read(c *checker, at string, n *node, dst **T) {
	var v T
	o.shape.read(c, at, n, &v)
	*dst = &v
}
