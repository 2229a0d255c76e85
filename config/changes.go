package config

import (
	"net"
	"reflect"
)

// Equal reports whether two agents are configured alike, secrets included, so
// that a reload can leave the connections of one alone.
func (a Agent) Equal(b Agent) bool { return reflect.DeepEqual(a, b) }

// Changes compares the agents of two configurations and returns the aliases of
// those that are new, that differ and that are gone, each in the order of its
// file, none of the lists nil. The order of agents in a file is no difference.
func Changes(before, after *Config) (added, changed, removed []string) {
	added, changed, removed = []string{}, []string{}, []string{}
	for _, a := range after.Agents {
		if old, ok := before.Agent(a.Alias); !ok {
			added = append(added, a.Alias)
		} else if !a.Equal(*old) {
			changed = append(changed, a.Alias)
		}
	}
	for _, a := range before.Agents {
		if _, ok := after.Agent(a.Alias); !ok {
			removed = append(removed, a.Alias)
		}
	}
	return added, changed, removed
}

// CheckListen checks an address that a flag gives in place of listen. The
// error is an *Error without a place.
func CheckListen(address string) error {
	if wrong := listenRule(address); wrong != "" {
		return &Error{Problems: []Problem{{Path: "--listen", Message: quote(address) + " " + wrong}}}
	}
	return nil
}

// Loopback reports whether only this machine can reach Listen.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && isLoopback(host)
}
