package handles

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeRedis speaks enough RESP2 for the store, in memory and over net.Pipe, so
// that it lives inside a synctest bubble. Expiry follows the clock of the
// bubble. It complains about commands that it does not know.
type fakeRedis struct {
	t testing.TB

	mu   sync.Mutex // guards what follows
	keys map[string]fakeValue
	revs map[string]int // changes by key, for WATCH
	oom  bool           // SET answers that the memory is full
	down bool           // connections break
	// before runs ahead of a command of that name, once, without mu.
	before map[string]func()
	conns  sync.WaitGroup
}

type fakeValue struct {
	value string
	until time.Time // zero: for ever
}

func newFakeRedis(t testing.TB) *fakeRedis {
	f := &fakeRedis{t: t, keys: map[string]fakeValue{}, revs: map[string]int{}, before: map[string]func(){}}
	t.Cleanup(f.conns.Wait)
	return f
}

func (f *fakeRedis) open(t testing.TB) *Redis {
	t.Helper()
	r, err := OpenRedis(context.Background(), RedisOptions{URL: "redis://fake:6379/0", dial: f.dial})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *fakeRedis) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fakeRedis) dial(context.Context, string, string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: io.ErrClosedPipe}
	}
	client, server := net.Pipe()
	f.conns.Add(1)
	go func() {
		defer f.conns.Done()
		defer server.Close()
		(&fakeConn{fakeRedis: f, watched: map[string]int{}}).serve(server)
	}()
	return client, nil
}

// fakeConn is one connection with its transaction.
type fakeConn struct {
	*fakeRedis
	watched map[string]int
	multi   bool
	queue   [][]string
}

func (c *fakeConn) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		args, err := readCommand(in)
		if err != nil {
			return
		}
		c.runHook(strings.ToLower(args[0]))
		reply := c.command(args)
		if reply == "" {
			return
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func (c *fakeConn) runHook(name string) {
	c.mu.Lock()
	fn := c.before[name]
	delete(c.before, name)
	c.mu.Unlock()
	if fn != nil {
		fn()
	}
}

func readCommand(in *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		var size int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		buf := make([]byte, size+2)
		if _, err := io.ReadFull(in, buf); err != nil {
			return nil, err
		}
		args[i] = string(buf[:size])
	}
	return args, nil
}

func bulk(s string) string  { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
func number(n int64) string { return ":" + strconv.FormatInt(n, 10) + "\r\n" }
func array(items []string) string {
	return fmt.Sprintf("*%d\r\n%s", len(items), strings.Join(items, ""))
}

const (
	replyOK   = "+OK\r\n"
	replyNone = "$-1\r\n"
	replyOOM  = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
)

// command answers one command, "" to break the connection.
func (c *fakeConn) command(args []string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return ""
	}
	name := strings.ToLower(args[0])
	switch name {
	case "watch":
		for _, k := range args[1:] {
			c.purge(k)
			c.watched[k] = c.revs[k]
		}
		return replyOK
	case "unwatch":
		clear(c.watched)
		return replyOK
	case "multi":
		c.multi, c.queue = true, nil
		return replyOK
	case "exec":
		return c.exec()
	}
	if c.multi {
		if c.oom && name == "set" {
			c.queue = append(c.queue, []string{"oom"})
			return replyOOM
		}
		c.queue = append(c.queue, args)
		return "+QUEUED\r\n"
	}
	return c.apply(name, args[1:])
}

func (c *fakeConn) exec() string {
	defer clear(c.watched)
	c.multi = false
	for _, q := range c.queue {
		if q[0] == "oom" {
			return "-EXECABORT Transaction discarded because of previous errors.\r\n"
		}
	}
	for k, rev := range c.watched {
		c.purge(k)
		if c.revs[k] != rev {
			return "*-1\r\n"
		}
	}
	var out []string
	for _, q := range c.queue {
		out = append(out, c.apply(strings.ToLower(q[0]), q[1:]))
	}
	return array(out)
}

// purge drops a key that has expired.
func (c *fakeConn) purge(k string) {
	if v, ok := c.keys[k]; ok && !v.until.IsZero() && !time.Now().Before(v.until) {
		delete(c.keys, k)
		c.revs[k]++
	}
}

// apply runs a command outside or at the end of a transaction, under mu.
func (c *fakeConn) apply(name string, a []string) string {
	switch name {
	case "hello", "client":
		return "-ERR unknown command\r\n"
	case "select":
		return replyOK
	case "ping":
		return "+PONG\r\n"
	case "get", "getdel":
		c.purge(a[0])
		v, ok := c.keys[a[0]]
		if !ok {
			return replyNone
		}
		if name == "getdel" {
			delete(c.keys, a[0])
			c.revs[a[0]]++
		}
		return bulk(v.value)
	case "set":
		return c.applySet(a)
	case "del":
		n := int64(0)
		for _, k := range a {
			c.purge(k)
			if _, ok := c.keys[k]; ok {
				delete(c.keys, k)
				c.revs[k]++
				n++
			}
		}
		return number(n)
	case "pttl":
		c.purge(a[0])
		v, ok := c.keys[a[0]]
		switch {
		case !ok:
			return number(-2)
		case v.until.IsZero():
			return number(-1)
		}
		return number(time.Until(v.until).Milliseconds())
	case "pexpire":
		return c.applyExpire(a)
	case "scan":
		return c.applyScan(a)
	}
	c.t.Errorf("the fake server was sent %s %q", name, a)
	return "-ERR unknown command '" + name + "'\r\n"
}

func (c *fakeConn) applySet(a []string) string {
	if c.oom {
		return replyOOM
	}
	k, v := a[0], fakeValue{value: a[1]}
	c.purge(k)
	for i := 2; i < len(a); i++ {
		switch strings.ToLower(a[i]) {
		case "nx":
			if _, ok := c.keys[k]; ok {
				return replyNone
			}
		case "px", "ex":
			n, _ := strconv.ParseInt(a[i+1], 10, 64)
			unit := time.Millisecond
			if strings.EqualFold(a[i], "ex") {
				unit = time.Second
			}
			v.until = time.Now().Add(time.Duration(n) * unit)
			i++
		default:
			c.t.Errorf("the fake server was sent SET with %q", a[i])
		}
	}
	c.keys[k] = v
	c.revs[k]++
	return replyOK
}

func (c *fakeConn) applyExpire(a []string) string {
	c.purge(a[0])
	v, ok := c.keys[a[0]]
	n, _ := strconv.ParseInt(a[1], 10, 64)
	until := time.Now().Add(time.Duration(n) * time.Millisecond)
	if !ok || len(a) > 2 && strings.EqualFold(a[2], "gt") && !until.After(v.until) {
		return number(0)
	}
	v.until = until
	c.keys[a[0]] = v
	c.revs[a[0]]++
	return number(1)
}

// applyScan pages by twos and repeats the last key of a page, as SCAN may.
func (c *fakeConn) applyScan(a []string) string {
	pattern := "*"
	for i, s := range a {
		if strings.EqualFold(s, "match") {
			pattern = a[i+1]
		}
	}
	var names []string
	for k := range c.keys {
		if c.purge(k); c.keys[k] != (fakeValue{}) {
			if ok, _ := path.Match(pattern, k); ok {
				names = append(names, k)
			}
		}
	}
	sort.Strings(names)
	at, _ := strconv.Atoi(a[0])
	end, next := at+2, at+2
	if end >= len(names) {
		end, next = len(names), 0
	}
	var page []string
	for _, n := range names[max(0, min(at-1, end)):end] {
		page = append(page, bulk(n))
	}
	return array([]string{bulk(strconv.Itoa(next)), array(page)})
}
