package main

// finding is one thing that doctor can find, with what to do about it. The
// list is docs/troubleshooting.md too.
type finding struct {
	// code names it in --json and in the documentation.
	code string
	step string
	// result is resultFailure, resultWarning or resultSkipped.
	result string
	means  string
	remedy string
}

// The steps of doctor, in order; the last five are of a gateway.
const (
	stepConfig    = "config"
	stepResolve   = "resolve"
	stepConnect   = "connect"
	stepTLS       = "tls"
	stepCard      = "card"
	stepInterface = "interface"
	stepAuth      = "auth"
	stepCall      = "call"
	stepStream    = "stream"

	stepReach  = "reach"
	stepHost   = "host"
	stepToken  = "token"
	stepOrigin = "origin"
	stepTools  = "tools"
)

// What a step can come to. A failure makes the agent unusable.
const (
	resultOK      = "ok"
	resultNote    = "note"
	resultWarning = "warning"
	resultFailure = "failure"
	resultSkipped = "skipped"
)

// findings is every finding, in the order of the steps.
func findings() []finding {
	return []finding{
		{"agent_disabled", stepConfig, resultWarning, "The agent is left out of the gateway.",
			"remove agents.<alias>.enabled, or set it to true"},
		{"config_refused", stepConfig, resultFailure, "The agent's entry cannot be used as configured: its credential, its address, a variable that is not set. Under the name configuration: something else in the file.",
			"correct what the line names; 'a2agate check' shows every problem of the file"},

		{"name_unknown", stepResolve, resultFailure, "The host name of the address does not exist.",
			"correct the host in url, or add the name where this machine looks names up; in a container use the name of the other container's service"},
		{"name_server", stepResolve, resultFailure, "The name server does not answer.",
			"check this machine's network and name server (/etc/resolv.conf)"},

		{"refused", stepConnect, resultFailure, "The machine is there, but nothing listens on that port.",
			"start the agent, or correct the port in url; in a container 127.0.0.1 is the container itself"},
		{"unreachable", stepConnect, resultFailure, "There is no way to that address from here.",
			"check the network, the VPN and the routes of this machine"},
		{"connect_timeout", stepConnect, resultFailure, "Nothing answers at that address: a firewall drops the packets, or the machine is off.",
			"open the port in the firewall between here and the agent, or correct the address in url"},
		{"connect_failed", stepConnect, resultFailure, "No connection could be made.",
			"check the address in url and the network"},

		{"tls_plain", stepTLS, resultFailure, "What listens there does not speak TLS.",
			"write http:// in url, or name the port that speaks TLS"},
		{"tls_authority", stepTLS, resultFailure, "The certificate is signed by an authority that this machine does not know.",
			"install the authority's certificate on this machine, or name it as caFile of an auth of type mtls"},
		{"tls_name", stepTLS, resultFailure, "The certificate is for another host name.",
			"use the name that stands in the certificate in url, or set serverName of an auth of type mtls"},
		{"tls_expired", stepTLS, resultFailure, "The certificate has expired, or is not valid yet.",
			"have the agent's certificate renewed, and check the clock of this machine"},
		{"tls_client", stepTLS, resultFailure, "The agent refuses the handshake: it wants a client certificate, or another one.",
			"set auth of type mtls with certFile and keyFile that the agent accepts"},
		{"tls_failed", stepTLS, resultFailure, "The TLS handshake failed.",
			"check that the port speaks TLS 1.2 or later"},

		{"card_auth", stepCard, resultFailure, "The agent does not show its card without a credential that it accepts.",
			"set agents.<alias>.auth to what the agent asks for, or correct the credential; onCard: always sends it at once"},
		{"credential_unavailable", stepAuth, resultFailure, "The configured credential cannot be had: the token endpoint or the Azure CLI gives none.",
			"correct the fields of auth that the line names; for az_cli run 'az login'"},
		{"card_missing", stepCard, resultFailure, "There is no card at any of the places where cards are.",
			"name the card's address as cardUrl, or its path below url as cardPath; or correct the path in url"},
		{"card_page", stepCard, resultFailure, "What answers is not an agent: a web page, a login page or other JSON than a card.",
			"open the address in a browser: a login page needs auth, another server another url; or name the card as cardUrl"},
		{"card_mcp", stepCard, resultFailure, "What answers is an MCP server, such as an a2agate gateway, and not an A2A agent.",
			"name the agent's own address in url; the address of an MCP server belongs into an MCP client"},
		{"card_invalid", stepCard, resultFailure, "The card cannot be used.",
			"have the agent's operator correct the card as the line says"},
		{"card_too_large", stepCard, resultFailure, "The card is larger than the limit.",
			"raise limits.cardBytes, or have the agent's operator shorten the card"},
		{"card_slow", stepCard, resultFailure, "The agent takes the connection and does not answer in time.",
			"look at the agent's log and load; --timeout waits longer here"},
		{"card_down", stepCard, resultFailure, "The agent, or a proxy in front of it, is in trouble.",
			"look at the agent's log; the gateway tries again by itself"},
		{"card_no_http", stepCard, resultFailure, "What listens there does not speak HTTP.",
			"correct the port in url; a gRPC port is not what is needed"},
		{"card_blocked", stepCard, resultFailure, "The address of the card, or the one it is redirected to, is one that the gateway does not call.",
			"list the host in allowHosts if it may be called"},
		{"card_broken", stepCard, resultFailure, "The connection broke before the card was there.",
			"look at the agent's log, and at the proxies between here and the agent"},
		{"card_odd", stepCard, resultWarning, "The card is used, but something about it is not as it should be.",
			"tell the agent's operator; nothing is to be done here"},
		{"card_held", stepCard, resultWarning, "The agent is pinned and its card says something else than what was accepted: the gateway shows the accepted card.",
			"look at what has changed in it, then accept it with 'a2agate accept <alias>'"},

		{"no_interface", stepInterface, resultFailure, "The agent offers nothing that the gateway speaks: A2A 1.0 or 0.3 over JSONRPC or HTTP+JSON.",
			"have the agent offer one of these (gRPC alone does not do); remove protocol and binding where they exclude what it offers"},
		{"extension_required", stepInterface, resultFailure, "The agent demands an extension that the gateway does not speak.",
			"ask the agent's operator for an interface without it"},
		{"foreign_origin", stepInterface, resultFailure, "The card sends callers to another host than the one that is configured.",
			"list that host in allowHosts to call it without credentials, or set urlPolicy to configured to call the configured one"},
		{"address_corrected", stepInterface, resultWarning, "The card advertises an address that cannot be right from here; the corrected one is used.",
			"have the agent's operator correct the address in the card; or set urlPolicy to configured"},

		{"credential_missing", stepAuth, resultWarning, "The card demands a credential that is not configured.",
			"set agents.<alias>.auth to what the line names"},
		{"auth_refused", stepAuth, resultFailure, "The agent refuses the call for want of a credential, or refuses the one it got.",
			"set agents.<alias>.auth to what the agent asks for, or correct the credential and its scopes"},

		{"no_tasks", stepCall, resultWarning, "The agent does not know how to read a task: it can be sent messages, but long work cannot be followed.",
			"nothing, if the agent answers every message at once; else have it implement GetTask"},
		{"task_found", stepCall, resultWarning, "The agent shows a task that cannot exist.",
			"tell the agent's operator: GetTask of an unknown id has to answer TaskNotFound"},
		{"call_error", stepCall, resultWarning, "The agent answers in A2A, but with another error than TaskNotFound.",
			"look at the agent's log if messages fail too; --send tries one"},
		{"call_path", stepCall, resultFailure, "There is no A2A at the address of the interface.",
			"have the address in the card corrected, or set urlPolicy to configured"},
		{"call_http", stepCall, resultFailure, "The agent, or a proxy in front of it, answers calls with an HTTP error.",
			"look at the agent's log and at the proxy's"},
		{"call_not_a2a", stepCall, resultFailure, "What answers calls does not speak A2A: a web page, broken JSON or an answer to another request.",
			"set protocol or binding if the card is wrong about them; else correct url"},
		{"call_slow", stepCall, resultFailure, "The agent does not answer a simple question in time.",
			"look at the agent's log and load; --timeout waits longer here"},
		{"call_broken", stepCall, resultFailure, "The connection broke before the answer was there.",
			"look at the agent's log, and at the proxies between here and the agent"},
		{"call_connection", stepCall, resultFailure, "The address of the interface cannot be connected to.",
			"have the address in the card corrected, or set urlPolicy to configured"},

		{"stream_not_tried", stepStream, resultSkipped, "A stream begins with a message, and doctor sends none by itself.",
			"say --send TEXT to send one and to see how long the first event takes"},
		{"stream_unary", stepStream, resultNote, "The agent does not stream: its work is followed by asking again and again.",
			"nothing; answers may come a few seconds later than they are there"},
		{"stream_empty", stepStream, resultWarning, "The stream ended without one event.",
			"leave emptyStreamFallback on, so that the message is sent again without a stream; tell the agent's operator"},
		{"stream_slow", stepStream, resultWarning, "The first event took long: the agent is slow to begin, or a proxy holds the stream back.",
			"switch off buffering in the proxies before the agent (nginx: proxy_buffering off)"},
		{"send_failed", stepStream, resultFailure, "The agent did not take the message.",
			"look at the agent's log; the line has its own words"},

		{"gateway_down", stepReach, resultFailure, "No gateway listens there.",
			"start one with 'a2agate serve', or name the right address with --gateway"},
		{"gateway_not", stepReach, resultFailure, "Something else than a2agate answers there.",
			"choose another port with --listen, and name it with --gateway"},
		{"gateway_tls", stepReach, resultFailure, "The gateway's certificate is not accepted here.",
			"use the name that stands in the certificate, and install its authority on this machine, or name its file in SSL_CERT_FILE"},
		{"host_refused", stepHost, resultFailure, "The gateway does not answer to that host name.",
			"add the name to allowedHosts, or set publicUrl"},
		{"token_missing", stepToken, resultFailure, "The gateway wants to know who calls.",
			"set A2AGATE_TOKEN to one of the tokens of auth.tokens"},
		{"token_refused", stepToken, resultFailure, "The gateway does not know the token.",
			"set A2AGATE_TOKEN to one of the tokens of auth.tokens"},
		{"origin_refused", stepOrigin, resultFailure, "The gateway does not let pages of that origin call.",
			"add the origin to allowedOrigins"},
		{"origin_open", stepOrigin, resultWarning, "A request from a foreign web page is let in: something before the gateway takes the Origin header away.",
			"have the proxy pass Origin and Host on as they are"},
		{"gateway_path", stepTools, resultFailure, "A gateway is there, but its MCP endpoint is at another path.",
			"give clients and --gateway the whole address that 'a2agate serve' prints; it ends in /mcp unless a proxy has another path"},
		{"tools_failed", stepTools, resultFailure, "The gateway does not list its tools.",
			"look at the gateway's log"},
	}
}

// findingOf returns the finding of a code. Unknown codes are a defect of this
// program; a test looks for them.
func findingOf(code string) finding {
	for _, f := range findings() {
		if f.code == code {
			return f
		}
	}
	return finding{code: code, result: resultFailure}
}
