package a2a

// Version is a protocol version as it stands on the wire, Major.Minor.
type Version string

// The versions spoken. 0.2.x is treated as 0.3.
const (
	V10 Version = "1.0"
	V03 Version = "0.3"
)

// Binding is a protocol binding by its name in a card.
type Binding string

// The bindings spoken.
const (
	JSONRPC Binding = "JSONRPC"
	REST    Binding = "HTTP+JSON"
)

// Interface is one way to reach an agent, after the url policy has been
// applied (specification 8.3.2).
type Interface struct {
	// URL is used byte for byte; nothing is appended for JSONRPC, operation
	// paths are appended by string for REST.
	URL     string
	Binding Binding
	Version Version
	// Tenant is echoed in every request; "" sends none.
	Tenant string
	// Anonymous says that the interface is on another origin than the
	// configured one: no credential may go there.
	Anonymous bool
}
