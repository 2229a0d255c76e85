// Command agent is an A2A agent whose skills carry the names that the official
// MCP conformance suite calls, and do what the suite asks of a tool of that
// name. It does so by the means of A2A alone: messages, parts, task states,
// structured questions and streams, and a card that gives its skills schemas
// and a task policy (extension urn:a2agate:ext:tools:1). The gateway in front
// of it knows none of these names; any agent can get the same treatment.
//
// What A2A has no word for is left out, not imitated: sampling and roots of
// the client, log messages, resources under addresses of the suite's choice.
// The baselines in conformance/baseline say so, line by line.
package main
