package main

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"a2agate/config"
)

// A change that would let everybody in is refused.
func TestReloadKeepsTheDoorShut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agents.json")
	write(t, path, `{"agents":{"a":{"url":"http://x"}}}`)
	p := shell{dir: filepath.Dir(path)}.process(nil, io.Discard, io.Discard)
	running := &config.Config{Path: path, Listen: "0.0.0.0:8931", Auth: config.Inbound{Tokens: make([]config.Token, 1)}}
	_, err := fileFlags{}.reloading(p, running)()
	want := path + `: listen "0.0.0.0:8931" can be reached from other machines and no auth is configured; ` +
		`add auth.tokens or auth.oauth to the file, listen on 127.0.0.1, or say --insecure`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := (fileFlags{insecure: true}).reloading(p, running)(); err != nil {
		t.Errorf("with --insecure: %v", err)
	}
	running.Listen = "127.0.0.1:8931"
	if _, err := (fileFlags{}).reloading(p, running)(); err != nil {
		t.Errorf("on the loopback: %v", err)
	}
}

// Every key beside the agents is either taken over or named as waiting.
func TestEverySettingHasItsPlace(t *testing.T) {
	t.Parallel()
	leaves := map[string][]int{}
	var walk func(typ reflect.Type, at []int, name string)
	walk = func(typ reflect.Type, at []int, name string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			index := append(slices.Clone(at), i)
			if f.Name == "Path" && name == "" || f.Name == "Files" || f.Name == "Agents" && name == "" {
				continue
			}
			if f.Type.Kind() == reflect.Struct && slices.Contains([]string{"Wait", "Limits", "Log"}, f.Name) {
				walk(f.Type, index, name+f.Name+".")
				continue
			}
			leaves[name+f.Name] = index
		}
	}
	walk(reflect.TypeFor[config.Config](), nil, "")
	if len(leaves) < 30 {
		t.Fatalf("only %d settings found", len(leaves))
	}
	for name, index := range leaves {
		var changed config.Config
		change(t, reflect.ValueOf(&changed).Elem().FieldByIndex(index))
		var keys []string
		for _, s := range settings() {
			if !reflect.DeepEqual(s.value(&changed), s.value(&config.Config{})) {
				keys = append(keys, s.key)
			}
		}
		if len(keys) != 1 {
			t.Errorf("a change of %s shows in %q, want one setting", name, keys)
		}
	}
	if len(leaves) != len(settings()) {
		t.Errorf("%d settings for %d fields: %v", len(settings()), len(leaves), slices.Sorted(maps.Keys(leaves)))
	}
}

// change makes a value another than its zero.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("changed")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Field(i).Kind() == reflect.String {
				change(t, v.Field(i))
				return
			}
		}
		change(t, v.Field(0))
	default:
		t.Fatalf("no other value for %s", v.Type())
	}
}

// Parts that follow the configuration are told of a change, and their key
// waits for no restart.
func TestReloadTellsTheParts(t *testing.T) {
	t.Parallel()
	read := func(text string) *config.Config {
		cfg, err := config.Parse("agents.json", []byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	log, levels := newLogger(io.Discard, config.Log{Level: config.LevelInfo})
	g, err := newGateway(t.Context(), read(`{"agents":{"a":{"url":"http://127.0.0.1:1"}}}`), log, levels)
	if err != nil {
		t.Fatal(err)
	}
	agents, stop := context.WithCancel(context.Background())
	if err := g.fleet.start(agents, g.cfg); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}()
	var told []string
	g.follows = []follower{{[]string{"auth"}, func(c *config.Config) { told = append(told, c.Auth.Tokens[0].Name) }}}
	next := read(`{"agents":{"a":{"url":"http://127.0.0.1:1"}},"auth":{"tokens":[{"name":"ci","token":"t"}]},"log":{"level":"debug"}}`)
	r := newReloader(g, func() (*config.Config, error) { return next, nil }, log)
	r.reload(t.Context(), false)
	if !slices.Equal(told, []string{"ci"}) || !log.Enabled(t.Context(), slog.LevelDebug) {
		t.Errorf("told %q, debug %t", told, log.Enabled(t.Context(), slog.LevelDebug))
	}
	g.cfg = next // as if it had been started with auth
	if keys := g.waiting(read(`{"agents":{"a":{"url":"http://127.0.0.1:1"}}}`)); !slices.Equal(keys, []string{"auth"}) {
		t.Errorf("without auth %q wait", keys)
	}
	if s := r.Status(); len(s.Restart) != 0 || s.Problem != "" || time.Since(s.Loaded) > forever {
		t.Errorf("status %+v", s)
	}
}

// The reference lists what waits for a restart, all of it and nothing else.
func TestReferenceNamesWhatWaits(t *testing.T) {
	t.Parallel()
	listed := regexp.MustCompile("(?s)These wait for a restart.*?: (`.*?)\\.\n").FindStringSubmatch(mustRead(t, "../../docs/configuration.md"))
	if listed == nil {
		t.Fatal("docs/configuration.md does not list them")
	}
	var got []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(listed[1], -1) {
		got = append(got, m[1])
	}
	g := &gateway{}
	g.followEdge()
	var want []string
	for _, s := range settings() {
		if !s.live && !slices.Contains(g.follows[0].keys, s.key) {
			want = append(want, s.key)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	for _, key := range g.follows[0].keys {
		if !slices.ContainsFunc(settings(), func(s setting) bool { return s.key == key && !s.live }) {
			t.Errorf("%q is no setting", key)
		}
	}
}
