package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// checker reads one file and collects what is wrong with it.
type checker struct {
	*source
	env      func(string) (string, bool)
	readFile func(string) ([]byte, error)
	// dir is where relative paths begin.
	dir      string
	problems []Problem
	files    map[string]struct{}
}

// fail reports a problem at the start of a value.
func (c *checker) fail(n *node, path, message string) { c.failAt(n.start, path, message) }

// failAt reports a problem at an offset.
func (c *checker) failAt(offset int, path, message string) {
	line, column := c.place(offset)
	c.problems = append(c.problems, Problem{File: c.name, Line: line, Column: column, Path: path, Message: message})
}

// is reports whether n has the kind, and a problem when it has not.
func (c *checker) is(at string, n *node, want nodeKind) bool {
	if n.kind == want {
		return true
	}
	shown, remedy := c.excerpt(n), "write "+string(want)
	switch {
	case want == isObject:
		remedy = "write {…}"
	case want == isList:
		remedy = "put it in brackets, […]"
	case want == isString:
		remedy = "put it in quotes"
	case n.kind == isString:
		shown, remedy = quote(n.text), "write it without quotes"
	}
	c.fail(n, at, fmt.Sprintf("%s is not %s; %s", shown, want, remedy))
	return false
}

// excerpt shows a value of the wrong type: numbers and words as they stand,
// texts and structures, which may hold secrets, by their kind.
func (c *checker) excerpt(n *node) string {
	switch n.kind {
	case isNumber, isBool, isNull:
		return cut(string(c.json[n.start:n.end]))
	}
	return string(n.kind)
}

// builtin is the node of a default, standing where its object stands.
func (c *checker) builtin(object *node, json string) *node {
	n, err := (&source{json: []byte(json)}).parse()
	if err != nil { // not reached: a test reads every default
		n = &node{kind: isNull}
	}
	place(n, object.start)
	return n
}

// place moves a tree to one offset.
func place(n *node, offset int) {
	n.start, n.end = offset, offset
	for _, m := range n.members {
		place(m.value, offset)
	}
	for _, v := range n.items {
		place(v, offset)
	}
}

// duplicates reports keys that stand twice in one object, anywhere.
func (c *checker) duplicates(at string, n *node) {
	seen := make(map[string]int, len(n.members))
	for _, m := range n.members {
		path := child(at, m.key)
		if first, twice := seen[m.key]; twice {
			line, column := c.place(first)
			c.failAt(m.start, path, fmt.Sprintf("given twice, first at %d:%d; rename or remove one", line, column))
		} else {
			seen[m.key] = m.start
		}
		c.duplicates(path, m.value)
	}
	for i, v := range n.items {
		c.duplicates(item(at, i), v)
	}
}

// sorted returns the problems in the order of the file, without repetitions.
func (c *checker) sorted() []Problem {
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(c.problems)
}

// maxNamedFile bounds a file behind ${file:…}, in bytes.
const maxNamedFile = 1 << 20

// resolve makes a path of the file absolute as far as the file's own is.
func (c *checker) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.dir, path)
}

// content reads a file that the configuration names, and remembers it for the
// watcher even when it cannot be read: it may appear later.
func (c *checker) content(path string) ([]byte, error) {
	c.files[path] = struct{}{}
	data, err := c.readFile(path)
	if err != nil {
		return nil, errors.New(fileTrouble(path, err, "create it, or correct the path"))
	}
	if len(data) > maxNamedFile {
		return nil, fmt.Errorf("the file %s is larger than %d bytes", quote(path), maxNamedFile)
	}
	return data, nil
}

// fileTrouble is why a file cannot be read, without Go's chain of operations,
// and what to do. absent is the remedy for one that does not exist.
func fileTrouble(path string, err error, absent string) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the file %s does not exist; %s", quote(path), absent)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the file %s may not be read by this user; change its permissions", quote(path))
	}
	var in *fs.PathError
	if errors.As(err, &in) {
		err = in.Err
	}
	return fmt.Sprintf("the file %s cannot be read: %s", quote(path), err)
}

// expand replaces ${env:NAME} and ${file:PATH} in a string, once: what comes
// in is not looked at again. $${ stands for ${. ok is false when a problem was
// reported.
func (c *checker) expand(at string, n *node) (s string, ok bool) {
	var b strings.Builder
	ok = true
	rest := n.text
	for {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			b.WriteString(rest)
			return b.String(), ok
		}
		if strings.HasSuffix(before, "$") {
			b.WriteString(before + "{") // the $ of $${ is there already
			rest = after
			continue
		}
		b.WriteString(before)
		inner, tail, closed := strings.Cut(after, "}")
		if !closed {
			c.fail(n, at, "${ is not closed; write ${env:NAME} or ${file:PATH}, or $${ for ${ itself")
			return "", false
		}
		value, wrong := c.reference(inner)
		if wrong != "" {
			c.fail(n, at, wrong)
			ok = false
		}
		b.WriteString(value)
		rest = tail
	}
}

// reference returns what stands for ${inner}, or what is wrong with it.
func (c *checker) reference(inner string) (value, wrong string) {
	shown := "${" + cut(inner) + "}"
	scheme, name, _ := strings.Cut(inner, ":")
	switch {
	case scheme == "env" && isVariable(name):
		value, ok := c.env(name)
		if !ok {
			return "", fmt.Sprintf("%s: the environment variable %s is not set; set it where a2agate starts", shown, name)
		}
		return value, ""
	case scheme == "file" && name != "":
		data, err := c.content(c.resolve(name))
		if err != nil {
			return "", shown + ": " + err.Error()
		}
		// Editors and echo end a file with a line break that is not meant.
		text := strings.TrimPrefix(string(data), string(byteOrderMark))
		return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), ""
	}
	return "", quote(shown) + " is not known; write ${env:NAME} or ${file:PATH}, or $${ for ${ itself"
}

// isVariable reports whether s is the name of an environment variable.
func isVariable(s string) bool {
	for i, r := range s {
		if r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r)) && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
