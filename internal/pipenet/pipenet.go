// Package pipenet is a network in memory, for tests: a listener and the dialer
// that leads to it, joined by net.Pipe. A synctest bubble can tell when both
// ends of such a connection wait, which it cannot of sockets, so fake time goes
// on while real HTTP clients and servers talk. Only tests import it.
package pipenet

import (
	"context"
	"net"
	"sync"
)

// Network is one listener and the way to it. Its methods may be called
// concurrently; Close must be called for Accept to return.
type Network struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

var _ net.Listener = (*Network)(nil)

// New returns an open Network. Inside a synctest bubble it belongs to that
// bubble.
func New() *Network {
	return &Network{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener: it returns the far end of the next Dial, or
// net.ErrClosed after Close.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Connections that are open stay open.
func (n *Network) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

// Addr implements net.Listener; it names no host.
func (n *Network) Addr() net.Addr { return &net.IPAddr{} }

// Dial returns the near end of a connection once it is accepted, whatever the
// address; it has the signature of http.Transport's DialContext. After Close it
// fails as a refused dial does.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.conns <- far:
		return near, nil
	case <-n.done:
		return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
