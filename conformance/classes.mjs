// What each scenario of the official suite needs of a server, so that a score
// can be read: a bridge of agents is not a collection of the suite's fixtures.
//
//   A  every tools server
//   B  a tool of the suite's, which an agent's skill can be
//   C  prompts, resources or completions
//   N  what no A2A agent can cause (sampling, roots, log messages), or fixed
//      content of the suite's under its own addresses
export const classNames = {
  A: 'every tools server',
  B: 'a tool of the suite’s, as a skill',
  C: 'prompts, resources, completions',
  N: 'nothing that A2A can express',
};

const scenarios = {
  A: [
    'server-initialize', 'server-session-lifecycle', 'server-stateless', 'ping', 'tools-list', 'server-sse-multiple-streams',
    'dns-rebinding-protection', 'http-header-validation', 'http-custom-header-server-validation',
    'input-required-result-unsupported-methods', 'input-required-result-validate-input',
  ],
  B: [
    'tools-call-simple-text', 'tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource', 'tools-call-mixed-content',
    'tools-call-error', 'tools-call-with-progress', 'tools-call-elicitation', 'elicitation-sep1034-defaults', 'elicitation-sep1330-enums',
    'json-schema-2020-12', 'server-sse-polling',
    'input-required-result-basic-elicitation', 'input-required-result-request-state', 'input-required-result-multi-round',
    'input-required-result-missing-input-response', 'input-required-result-result-type', 'input-required-result-tampered-state',
    'input-required-result-ignore-extra-params',
    'tasks-lifecycle', 'tasks-capability-negotiation', 'tasks-wire-fields', 'tasks-request-state-removal', 'tasks-mrtr-input',
    'tasks-request-headers', 'tasks-dispatch-and-envelope', 'tasks-status-notifications', 'tasks-required-task-error', 'tasks-mrtr-composition',
  ],
  C: [
    'completion-complete', 'caching', 'resources-list', 'sep-2164-resource-not-found', 'prompts-list', 'prompts-get-simple', 'prompts-get-with-args',
    'input-required-result-non-tool-request',
    'sep-2640-skills-directory', 'sep-2640-skills-enumeration', 'sep-2640-skills-manifest',
  ],
  N: [
    'resources-read-text', 'resources-read-binary', 'resources-templates-read', 'resources-subscribe', 'resources-unsubscribe',
    'prompts-get-embedded-resource', 'prompts-get-with-image',
    'tools-call-sampling', 'tools-call-with-logging', 'logging-set-level',
    'input-required-result-basic-sampling', 'input-required-result-basic-list-roots',
    'input-required-result-multiple-input-requests', 'input-required-result-capability-check',
  ],
};

// Checks whose class is not that of their scenario.
const single = {
  'server-stateless:sep-2575-server-rejects-undeclared-capability': 'N',
  'server-stateless:sep-2575-missing-capability-http-400': 'N',
  'server-stateless:sep-2575-http-server-no-independent-requests-on-stream': 'B',
  'server-stateless:sep-2575-server-no-log-without-loglevel': 'B',
  'server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription': 'B',
  'server-stateless:sep-2575-server-sends-prompts-list-changed-on-subscription': 'B',
};

const byScenario = new Map(Object.entries(scenarios).flatMap(([name, list]) => list.map((s) => [s, name])));

// classOf returns the class of a scenario, or of one of its checks. A scenario
// that stands nowhere is an error: somebody has to read it first.
export function classOf(scenario, check) {
  const found = (check && single[`${scenario}:${check}`]) ?? byScenario.get(scenario);
  if (!found) throw new Error(`scenario ${scenario} has no class: read it and put it into classes.mjs`);
  return found;
}
