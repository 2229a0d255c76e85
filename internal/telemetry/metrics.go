package telemetry

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The value of a label that stands for everything outside its set.
const other = "other"

// maxTools bounds the tools that have a label of their own. Tools come from
// agents' cards, and a card that changes all day must not fill the memory.
const maxTools = 1000

// The closed sets of labels. Agents are labels too: they are configured.
var (
	methodLabels = setOf("initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read", "completion/complete", "subscriptions/listen",
		"tasks/get", "tasks/update", "tasks/cancel", "batch",
		"notifications/initialized", "notifications/cancelled", "notifications/progress")
	opLabels       = setOf("send", "stream", "get", "list", "cancel", "subscribe", "card", "query")
	causeLabels    = setOf("agent", "dial", "dns", "tls", "reset", "timeout", "canceled", "http", "auth", "protocol", "limit", "empty_stream", "truncated", "unavailable", "busy", "invalid")
	fallbackLabels = setOf("interface", "auth", "content_type", "version", "subscribe_get", "path", "slash", "url", "empty_stream", "moved")
	outcomeLabels  = setOf("result", "tool_error", "input_required", "task", "protocol_error")
	revisionLabels = setOf("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
	stateLabels    = []string{"ready", "connecting", "auth_required", "not_a_card", "invalid_card", "blocked_origin", "no_interface", "down"}
)

func setOf(names ...string) map[string]string {
	m := make(map[string]string, len(names))
	for _, n := range names {
		m[n] = n
	}
	return m
}

// label returns v where it is in the set, "none" for "", else "other".
func label(set map[string]string, v string) string {
	if in, ok := set[v]; ok {
		return in
	}
	if v == "" {
		return "none"
	}
	return other
}

// Buckets reach from a cache's answer to an agent's afternoon.
var (
	callBuckets     = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	upstreamBuckets = []float64{.005, .025, .1, .5, 1, 5, 30, 120, 600}
	requestBuckets  = []float64{.0005, .002, .01, .05, .25, 1, 5, 30, 300}
)

// Metrics are the gateway's metrics. A nil *Metrics counts nothing. Its methods
// may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry

	calls       *prometheus.CounterVec   // tool, agent, outcome
	callTime    *prometheus.HistogramVec // tool
	requests    *prometheus.CounterVec   // method, revision, code
	requestTime *prometheus.HistogramVec // method
	refused     *prometheus.CounterVec   // status
	upstream    *prometheus.CounterVec   // agent, op, cause
	retries     *prometheus.CounterVec   // agent, op
	fallbacks   *prometheus.CounterVec   // agent, fallback
	upTime      *prometheus.HistogramVec // agent, op
	watches     *prometheus.GaugeVec     // agent
	followed    *prometheus.GaugeVec     // agent
	streams     *prometheus.GaugeVec     // agent
	reloads     *prometheus.CounterVec   // outcome

	mu    sync.Mutex
	tools map[string]bool

	// Looking a series up by its labels costs more than counting: those that
	// a call needs are kept at hand.
	callSeries     series[callLabels, counted]
	requestSeries  series[requestLabels, counted]
	upstreamSeries series[upstreamLabels, counted]
	followSeries   series[string, followed]
}

type (
	callLabels     struct{ tool, agent, outcome string }
	requestLabels  struct{ method, revision, code string }
	upstreamLabels struct{ agent, op, cause string }

	// counted is a count with the times of what is counted.
	counted struct {
		count prometheus.Counter
		times prometheus.Observer
	}
	followed struct{ watches, tasks, streams prometheus.Gauge }
)

func (c counted) add(took time.Duration) {
	c.count.Inc()
	c.times.Observe(took.Seconds())
}

// series keeps the series of labels. The labels are closed sets, so it stays
// small.
type series[L comparable, S any] struct {
	mu sync.RWMutex
	of map[L]S
}

// get returns the series of labels, made by make where it is not at hand.
func (s *series[L, S]) get(labels L, make func() S) S {
	s.mu.RLock()
	v, ok := s.of[labels]
	s.mu.RUnlock()
	if ok {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v = make()
	if s.of == nil {
		s.of = map[L]S{}
	}
	s.of[labels] = v
	return v
}

// forget drops what is at hand, because the series do not exist any more.
func (s *series[L, S]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.of)
}

// Now is the part of the metrics that is read when they are asked for. A nil
// function leaves its metrics out. They are called concurrently and must be
// quick.
type Now struct {
	// Handles is the number of handles in the store; false when it does not say.
	Handles func() (int, bool)
	// Waiting is the number of calls that wait, Listens that of open listens.
	Waiting func() int
	Listens func() int
	// Agents are the states of the agents by alias.
	Agents func() map[string]string
}

// NewMetrics returns the metrics of a gateway of a version, all of them zero.
func NewMetrics(version string, now Now) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), tools: map[string]bool{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "a2agate_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		c := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a2agate_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		c := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "a2agate_" + name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.calls = counter("calls_total", "Tool calls that are over.", "tool", "agent", "outcome")
	m.callTime = histogram("call_duration_seconds", "How long tool calls took, waiting for the agent included.", callBuckets, "tool")
	m.requests = counter("requests_total", "MCP requests that are over; code is the JSON-RPC error code, 0 for a result, 429 for one over a limit.", "method", "revision", "code")
	m.requestTime = histogram("request_duration_seconds", "How long MCP requests took.", requestBuckets, "method")
	m.refused = counter("refused_total", "Requests that were refused before they were read, by HTTP status.", "status")
	m.upstream = counter("upstream_requests_total", "Requests to agents that are over; cause is what went wrong, none for nothing.", "agent", "op", "cause")
	m.retries = counter("upstream_retries_total", "Requests to agents that repeated an earlier one.", "agent", "op")
	m.fallbacks = counter("upstream_fallbacks_total", "Requests to agents that put right what the card has wrong.", "agent", "fallback")
	m.upTime = histogram("upstream_duration_seconds", "How long requests to agents took; a stream counts to its end.", upstreamBuckets, "agent", "op")
	m.watches = gauge("watches", "Calls and listens that wait for a task or an answer.", "agent")
	m.followed = gauge("followed_tasks", "Tasks and exchanges that are followed.", "agent")
	m.streams = gauge("upstream_streams", "Streams open to the agent.", "agent")
	m.reloads = counter("reloads_total", "Changes of the configuration, by outcome: ok or failed.", "outcome")
	m.reloads.WithLabelValues("ok")
	m.reloads.WithLabelValues("failed")
	m.registry.MustRegister(
		buildInfo(version), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &nowCollector{now: now},
	)
	return m
}

func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "a2agate_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// Handler serves the metrics in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// Call counts a tool call that is over. tool is "" for a name that no tool
// has, agent "" where the call went to none.
func (m *Metrics) Call(tool, agent, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	tool = m.tool(tool)
	if agent == "" {
		agent = "none"
	}
	l := callLabels{tool, agent, label(outcomeLabels, outcome)}
	m.callSeries.get(l, func() counted {
		return counted{m.calls.WithLabelValues(l.tool, l.agent, l.outcome), m.callTime.WithLabelValues(l.tool)}
	}).add(took)
}

// tool is the label of a tool; the first ones have their own.
func (m *Metrics) tool(name string) string {
	if name == "" {
		return "none"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tools[name] {
		return name
	}
	if len(m.tools) >= maxTools {
		return other
	}
	m.tools[name] = true
	return name
}

// OverLimit stands for the code of a request that was over a limit of its
// caller. On the wire its code is that of an internal error, for want of a
// better one; here the two are told apart.
const OverLimit = http.StatusTooManyRequests

// Request counts an MCP request that is over. code is its JSON-RPC error code,
// 0 for a result, or OverLimit.
func (m *Metrics) Request(method, revision string, code int, took time.Duration) {
	if m == nil {
		return
	}
	l := requestLabels{label(methodLabels, method), label(revisionLabels, revision), codeLabel(code)}
	m.requestSeries.get(l, func() counted {
		return counted{m.requests.WithLabelValues(l.method, l.revision, l.code), m.requestTime.WithLabelValues(l.method)}
	}).add(took)
}

// codeLabel is the code of an error, of those that exist.
func codeLabel(code int) string {
	switch code {
	case 0:
		return "0"
	case OverLimit:
		return "429"
	case -32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022:
		return strconv.Itoa(code)
	}
	return other
}

// Refused counts a request that was refused by its headers alone.
func (m *Metrics) Refused(status int) {
	if m == nil {
		return
	}
	s := other
	if status >= 400 && status < 600 {
		s = strconv.Itoa(status)
	}
	m.refused.WithLabelValues(s).Inc()
}

// Upstream is one request to an agent that is over.
type Upstream struct {
	Agent, Op string
	// Cause is "" when it went well, Fallback when it corrected nothing.
	Cause, Fallback string
	// Retry is greater than 0 for a repetition.
	Retry int
	Took  time.Duration
}

// Upstream counts a request to an agent.
func (m *Metrics) Upstream(u Upstream) {
	if m == nil {
		return
	}
	l := upstreamLabels{u.Agent, label(opLabels, u.Op), label(causeLabels, u.Cause)}
	m.upstreamSeries.get(l, func() counted {
		return counted{m.upstream.WithLabelValues(l.agent, l.op, l.cause), m.upTime.WithLabelValues(l.agent, l.op)}
	}).add(u.Took)
	if u.Retry > 0 {
		m.retries.WithLabelValues(l.agent, l.op).Inc()
	}
	if u.Fallback != "" {
		m.fallbacks.WithLabelValues(u.Agent, label(fallbackLabels, u.Fallback)).Inc()
	}
}

// Follow changes the numbers of what is followed of an agent.
func (m *Metrics) Follow(agent string, watches, tasks, streams int) {
	if m == nil {
		return
	}
	f := m.followSeries.get(agent, func() followed {
		return followed{m.watches.WithLabelValues(agent), m.followed.WithLabelValues(agent), m.streams.WithLabelValues(agent)}
	})
	if watches != 0 {
		f.watches.Add(float64(watches))
	}
	if tasks != 0 {
		f.tasks.Add(float64(tasks))
	}
	if streams != 0 {
		f.streams.Add(float64(streams))
	}
}

// Reload counts a change of the configuration.
func (m *Metrics) Reload(ok bool) {
	if m == nil {
		return
	}
	outcome := "failed"
	if ok {
		outcome = "ok"
	}
	m.reloads.WithLabelValues(outcome).Inc()
}

// Forget drops the counts of an agent that is not configured any more. What is
// still followed of it goes on to be shown, and ends at zero.
func (m *Metrics) Forget(agent string) {
	if m == nil {
		return
	}
	match := prometheus.Labels{"agent": agent}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		m.calls, m.upstream, m.retries, m.fallbacks, m.upTime,
	} {
		v.DeletePartialMatch(match)
	}
	m.callSeries.forget()
	m.upstreamSeries.forget()
}

var (
	descHandles = prometheus.NewDesc("a2agate_handles", "Handles in the store.", nil, nil)
	descWaiting = prometheus.NewDesc("a2agate_calls_waiting", "Requests that are being answered.", nil, nil)
	descListens = prometheus.NewDesc("a2agate_listens", "Open subscriptions/listen streams.", nil, nil)
	descStates  = prometheus.NewDesc("a2agate_agents", "Agents by state.", []string{"state"}, nil)
	descReady   = prometheus.NewDesc("a2agate_agent_ready", "1 for an agent that is ready.", []string{"agent"}, nil)
)

// nowCollector reads Now.
type nowCollector struct{ now Now }

// Describe implements prometheus.Collector.
func (c *nowCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descHandles, descWaiting, descListens, descStates, descReady} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *nowCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	if c.now.Handles != nil {
		if n, ok := c.now.Handles(); ok {
			gauge(descHandles, n)
		}
	}
	if c.now.Waiting != nil {
		gauge(descWaiting, c.now.Waiting())
	}
	if c.now.Listens != nil {
		gauge(descListens, c.now.Listens())
	}
	if c.now.Agents == nil {
		return
	}
	states := map[string]int{}
	for alias, state := range c.now.Agents() {
		ready := 0
		if state == "ready" {
			ready = 1
		}
		gauge(descReady, ready, alias)
		states[state]++
	}
	for _, s := range stateLabels {
		gauge(descStates, states[s], s)
	}
}
