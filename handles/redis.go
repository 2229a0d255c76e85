package handles

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// DefaultPrefix begins every key that a Redis writes.
	DefaultPrefix = "a2agate:"
	// grace is how much longer than an entry's life its key lives, so that
	// its owner can be told that it has expired, or was used.
	grace = 5 * time.Minute
	// redisTries bounds optimistic transactions that others interrupted.
	redisTries = 16
	// noKey is the time to live of a key that does not exist.
	noKey = time.Duration(-2)
	// scanCount is the page size of Range and Len.
	scanCount = 500
)

// RedisOptions say where a Redis is.
type RedisOptions struct {
	// URL is redis://, rediss:// or unix://, with user, password and database.
	URL string
	// Prefix begins every key; "" is DefaultPrefix.
	Prefix string
	// TLS replaces the settings of rediss://; may be nil.
	TLS *tls.Config

	// dial is for tests; nil dials the network.
	dial dialFunc
}

// Redis is a Store in a Redis or Valkey server of version 7 or later, shared
// by all gateways that use the same prefix. Make it with OpenRedis.
//
//	<prefix>h:<handle>   the entry as JSON
//	<prefix>k:<key>      the handle that an agent's context or task has
//	<prefix>u:<handle>   whose a used state was
//	<prefix>l:<handle>   the lock of Acquire
//
// The server's clock rules: a key's time to live is the entry's life plus
// grace, so gateways whose clocks differ agree, and the server itself sweeps.
// Transactions are WATCH, MULTI and EXEC, without scripts, over keys that hash
// to different slots: a single server, with replicas or not, never a cluster.
// The bound is the server's maxmemory; with its default policy a full server
// answers CodeFull.
type Redis struct {
	db     *redis.Client
	prefix string
}

var (
	_ Store  = (*Redis)(nil)
	_ Locker = (*Redis)(nil)
)

// OpenRedis connects and checks that the server answers. Errors name the
// setting and never hold the URL, which may have a password in it.
func OpenRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	opt, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, errors.New("store.url: not a Redis URL; write redis://[user:password@]host:port[/database], or rediss:// for TLS")
	}
	if o.TLS != nil {
		opt.TLSConfig = o.TLS
	}
	if o.dial != nil {
		opt.Dialer = o.dial
	}
	disableExtras(opt)
	r := &Redis{db: redis.NewClient(opt), prefix: o.Prefix}
	if r.prefix == "" {
		r.prefix = DefaultPrefix
	}
	if err := r.db.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("store.url: the Redis at %s does not answer: %w; check address, password and TLS", opt.Addr, err), r.db.Close())
	}
	return r, nil
}

func (r *Redis) entryKey(handle string) string { return r.prefix + "h:" + handle }
func (r *Redis) usedKey(handle string) string  { return r.prefix + "u:" + handle }
func (r *Redis) lockKey(handle string) string  { return r.prefix + "l:" + handle }
func (r *Redis) bindKey(k Key) string          { return fmt.Sprintf("%sk:%x", r.prefix, k[:]) }

// life is the time to live of an entry's key. It depends on this gateway's
// clock only as far as the time between the table's reading and this one.
func life(expires time.Time) time.Duration {
	return max(time.Until(expires), 0) + grace
}

// Create implements Store.
func (r *Redis) Create(ctx context.Context, key Key, e Entry) (Entry, bool, error) {
	value, err := json.Marshal(e)
	if err != nil {
		return Entry{}, false, err
	}
	if key == (Key{}) {
		return e, true, full(r.db.Set(ctx, r.entryKey(e.Handle), value, life(e.Expires)).Err())
	}
	var shared Entry
	bind := r.bindKey(key)
	err = r.transact(ctx, func(tx *redis.Tx) error {
		shared = Entry{}
		handle, err := tx.Get(ctx, bind).Result()
		if err == nil {
			old, p, err := r.get(ctx, tx, handle)
			if err != nil {
				return err
			}
			if p == Live {
				shared = old
				return nil
			}
		} else if !errors.Is(err, redis.Nil) {
			return err
		}
		return commit(ctx, tx, func(p redis.Pipeliner) error {
			p.Set(ctx, r.entryKey(e.Handle), value, life(e.Expires))
			p.Set(ctx, bind, e.Handle, life(e.Expires))
			return nil
		})
	}, bind)
	if err != nil {
		return Entry{}, false, err
	}
	if shared.Handle != "" {
		return shared, false, nil
	}
	return e, true, nil
}

// transact runs fn until no other client has written to keys meanwhile.
func (r *Redis) transact(ctx context.Context, fn func(*redis.Tx) error, keys ...string) error {
	var err error
	for range redisTries {
		if err = r.db.Watch(ctx, fn, keys...); !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
	return err
}

// commit runs MULTI, what fn queues, and EXEC. The transaction's own error
// says only that it was discarded; why is with the command that was refused.
func commit(ctx context.Context, tx *redis.Tx, fn func(redis.Pipeliner) error) error {
	cmds, err := tx.TxPipelined(ctx, fn)
	if err != nil {
		for _, c := range cmds {
			if cause := full(c.Err()); errors.Is(cause, ErrFull) {
				return cause
			}
		}
	}
	return err
}

// full turns the server's refusal for want of memory into CodeFull.
func full(err error) error {
	if redis.IsOOMError(err) {
		return &Error{Code: CodeFull}
	}
	return err
}

// reader is what get needs: a client, or a transaction before its MULTI.
type reader interface {
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// Get implements Store.
func (r *Redis) Get(ctx context.Context, handle string) (Entry, Presence, error) {
	return r.get(ctx, r.db, handle)
}

func (r *Redis) get(ctx context.Context, db reader, handle string) (Entry, Presence, error) {
	var value, usedBy *redis.StringCmd
	var left *redis.DurationCmd
	_, err := db.Pipelined(ctx, func(p redis.Pipeliner) error {
		value = p.Get(ctx, r.entryKey(handle))
		left = p.PTTL(ctx, r.entryKey(handle))
		usedBy = p.Get(ctx, r.usedKey(handle))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return Entry{}, Absent, err
	}
	raw, err := value.Bytes()
	if errors.Is(err, redis.Nil) || err == nil && left.Val() == noKey {
		// noKey: another gateway took the entry between our two commands.
		return usedEntry(handle, usedBy)
	}
	if err != nil {
		return Entry{}, Absent, err
	}
	e, err := readEntry([]byte(handle), raw)
	if err != nil {
		return Entry{}, Absent, err
	}
	return withLife(e, left.Val())
}

// withLife sets the expiry of an entry from its key's time to live.
func withLife(e Entry, left time.Duration) (Entry, Presence, error) {
	left -= grace
	if left <= 0 {
		return e, Expired, nil
	}
	e.Expires = time.Now().UTC().Add(left)
	return e, Live, nil
}

// usedEntry is the answer for a handle without an entry.
func usedEntry(handle string, usedBy *redis.StringCmd) (Entry, Presence, error) {
	principal, err := usedBy.Result()
	if errors.Is(err, redis.Nil) {
		return Entry{}, Absent, nil
	}
	if err != nil {
		return Entry{}, Absent, err
	}
	kind, err := Parse(handle)
	return Entry{Handle: handle, Kind: kind, Principal: principal}, Used, err
}

// Touch implements Store.
func (r *Redis) Touch(ctx context.Context, e Entry, expires time.Time) (bool, error) {
	ttl := life(expires)
	var left *redis.DurationCmd
	_, err := r.db.Pipelined(ctx, func(p redis.Pipeliner) error {
		left = p.PTTL(ctx, r.entryKey(e.Handle))
		// GT only lengthens; the binding goes first, so that it never ends
		// before the entry.
		if key := e.key(); key != (Key{}) {
			expireGT(ctx, p, r.bindKey(key), ttl)
		}
		expireGT(ctx, p, r.entryKey(e.Handle), ttl)
		return nil
	})
	if err != nil {
		return false, err
	}
	if left.Val() <= grace { // expired before: undo what was lengthened
		return false, r.db.Del(ctx, r.entryKey(e.Handle)).Err()
	}
	return true, nil
}

// expireGT is PEXPIRE … GT in milliseconds; the client's own ExpireGT rounds
// to seconds.
func expireGT(ctx context.Context, p redis.Pipeliner, key string, ttl time.Duration) {
	p.Do(ctx, "pexpire", key, ttl.Milliseconds(), "gt")
}

// Swap implements Store.
func (r *Redis) Swap(ctx context.Context, rev uint64, e Entry) (bool, error) {
	value, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	ok := false
	name := r.entryKey(e.Handle)
	err = r.db.Watch(ctx, func(tx *redis.Tx) error {
		old, p, err := r.get(ctx, tx, e.Handle)
		if err != nil || p != Live || old.Rev != rev {
			return err
		}
		err = commit(ctx, tx, func(p redis.Pipeliner) error {
			p.Set(ctx, name, value, life(e.Expires))
			if key := e.key(); key != (Key{}) {
				p.Set(ctx, r.bindKey(key), e.Handle, life(e.Expires))
			}
			return nil
		})
		ok = err == nil
		return err
	}, name)
	if errors.Is(err, redis.TxFailedErr) {
		return false, nil
	}
	return ok, err
}

// Take implements Store. GETDEL decides between callers; who may take is
// checked before, because an entry's principal never changes.
func (r *Redis) Take(ctx context.Context, handle, principal string) (Entry, Presence, error) {
	e, p, err := r.get(ctx, r.db, handle)
	if err != nil || p != Live || e.Principal != principal {
		return e, p, err
	}
	// The mark first: between the two the handle is live, never unknown.
	if err := r.db.Set(ctx, r.usedKey(handle), principal, life(e.Expires)).Err(); err != nil {
		return Entry{}, Absent, full(err)
	}
	err = r.db.GetDel(ctx, r.entryKey(handle)).Err()
	if errors.Is(err, redis.Nil) {
		return e, Used, nil
	}
	if err != nil {
		return Entry{}, Absent, err
	}
	return e, Live, nil
}

// Delete implements Store.
func (r *Redis) Delete(ctx context.Context, handle string) error {
	e, p, err := r.get(ctx, r.db, handle)
	if err != nil {
		return err
	}
	names := []string{r.entryKey(handle), r.usedKey(handle)}
	if key := e.key(); p == Live && key != (Key{}) {
		names = append(names, r.bindKey(key))
	}
	return r.db.Del(ctx, names...).Err()
}

// Range implements Store.
func (r *Redis) Range(ctx context.Context, fn func(Entry) bool) error {
	return r.scan(ctx, func(handles []string) (bool, error) {
		for _, h := range handles {
			e, p, err := r.Get(ctx, h)
			if err != nil {
				return false, err
			}
			if p == Live && !fn(e) {
				return false, nil
			}
		}
		return true, nil
	})
}

// Len implements Store. It walks over all keys of the database: for a metric
// every minute, not for a call.
func (r *Redis) Len(ctx context.Context) (int, error) {
	n := 0
	err := r.scan(ctx, func(handles []string) (bool, error) {
		n += len(handles)
		return true, nil
	})
	return n, err
}

// scan calls page with the handles of all entries, some at a time.
func (r *Redis) scan(ctx context.Context, page func(handles []string) (more bool, err error)) error {
	seen := make(map[string]struct{}) // SCAN may repeat itself
	var cursor uint64
	for {
		names, next, err := r.db.Scan(ctx, cursor, escapeGlob(r.entryKey(""))+"*", scanCount).Result()
		if err != nil {
			return err
		}
		var handles []string
		for _, name := range names {
			h := strings.TrimPrefix(name, r.entryKey(""))
			if _, again := seen[h]; !again {
				seen[h] = struct{}{}
				handles = append(handles, h)
			}
		}
		more, err := page(handles)
		if err != nil || !more || next == 0 {
			return err
		}
		cursor = next
	}
}

// escapeGlob keeps a prefix with *, ?, [ or \ from being a pattern.
func escapeGlob(s string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(s)
}

// Sweep implements Store: the server sweeps by itself.
func (r *Redis) Sweep(context.Context) (int, error) { return 0, nil }

// Lock implements Locker.
func (r *Redis) Lock(ctx context.Context, name string, lease time.Duration) (func(), bool, error) {
	key, token := r.lockKey(name), rand.Text()
	ok, err := r.db.SetNX(ctx, key, token, lease).Result()
	if err != nil || !ok {
		return nil, false, err
	}
	return func() { r.unlock(key, token) }, true, nil
}

// unlock gives a lock back unless its lease ended and somebody else has it.
// When the server cannot be reached, the lease ends it.
func (r *Redis) unlock(key, token string) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	_ = r.db.Watch(ctx, func(tx *redis.Tx) error {
		if got, err := tx.Get(ctx, key).Result(); err != nil || got != token {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, key)
			return nil
		})
		return err
	}, key)
}

// Close implements Store.
func (r *Redis) Close() error { return r.db.Close() }

// SetRedisLogger sends what the Redis client says of its own accord (servers
// that do not answer) to log, at debug. The client has one log of a process,
// on stderr unless told otherwise; whoever owns the process calls this once.
func SetRedisLogger(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ log *slog.Logger }

// Printf implements the client's logging interface.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, fmt.Sprintf(format, args...))
}

// dialFunc opens a connection to the server.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// disableExtras leaves the client with plain commands, so that it works with
// every server and proxy that speaks them, starts no goroutine of its own and
// keeps to the deadlines of contexts.
func disableExtras(o *redis.Options) {
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	// The client's defaults would try a dead server twenty times.
	if o.MaxRetries == 0 {
		o.MaxRetries = 1
	}
	o.DialerRetries = 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
