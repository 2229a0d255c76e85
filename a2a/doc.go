// Package a2a is the gateway's own A2A client.
//
// It reads agent cards, chooses an interface, speaks A2A 1.0 and 0.3 over
// JSON-RPC and HTTP+JSON, folds streams into tasks, and keeps up with tasks
// that go on after a call has been answered. It knows nothing of MCP and
// imports no other package of this module, so everything above it meets an
// agent in the plain values of model.go.
//
// Three layers stand on one another:
//
//   - Client speaks to one agent whose interfaces are known: one method an
//     operation, typed errors, limits and deadlines everywhere.
//   - Agent is one configured agent: it finds the card, keeps its state
//     (ready, down, auth_required, …), and hands out the Client that fits.
//   - Follower keeps up with the tasks of one Agent: one upstream stream or
//     poll a task, shared by all who wait for it.
//
// What an agent sends is kept as raw JSON wherever its exact form matters
// (data parts, metadata, the card), and is decoded leniently: what can be
// understood is used, what cannot is kept and named, never a reason to drop
// the rest.
package a2a
