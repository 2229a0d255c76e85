// Package server is the HTTP edge of the gateway: it takes MCP requests of
// every served revision on one URL and answers them.
//
// A request passes, in this order, the guard (Host, Origin), the
// authentication, the body's limits, one strict parse into an Envelope, the
// choice of era, the header checks, and then Core, which knows no HTTP: stdio
// and tests use it too. tools/call goes to a Caller, tasks/* to Tasks; lists
// are written once per catalogue snapshot; what is left (initialize,
// server/discover, prompts/get, resources/read, completion/complete) goes to
// mcp-go's MCPServer.HandleMessage. mcp-go's own HTTP server is not used.
//
// Nothing is kept between two requests of a client. A legacy session id is a
// signed token that carries what it stands for.
//
// Section numbers in comments ("MCP 2026-07-28, transports") name the pages of
// the MCP specification.
package server
