// The gateways that the official suite is run against.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gateway, peer, results, start, stop } from './lib.mjs';

let started = [];

// begin starts an agent and a gateway in front of it with these settings.
async function begin(name, command, args, settings) {
  const agent = await start(`suite-agent-${name}`, command, args);
  started.push(agent);
  const config = join(results, `suite-${name}.json`);
  mkdirSync(results, { recursive: true });
  writeFileSync(config, JSON.stringify({ agents: { suite: { url: agent.url } }, ...settings }, null, 2));
  const front = await start(`suite-gateway-${name}`, gateway, ['serve', '--config', config, '--listen', '127.0.0.1:0'], {
    want: /http:\/\/127\.0\.0\.1:\d+\/mcp/, ready: /\n\s+suite\s+ready\b/,
  });
  started.push(front);
  return front;
}

async function end() {
  for (const one of started.reverse()) await stop(one);
  started = [];
}

// What both have in common: the argument agent is mirrored in a header, which
// is an option of the gateway and what the scenario about custom headers needs.
const settings = { paramHeaders: true };

export const modes = [
  {
    name: 'four-tools',
    title: 'four tools',
    about: 'The four tools alone, in front of the demo agent, which knows nothing of the suite.',
    settings,
    start: () => begin('four-tools', gateway, ['agent', '--listen', '127.0.0.1:0'], settings),
    stop: end,
  },
  {
    name: 'skills',
    title: 'skills',
    about: 'One tool a skill besides, in front of `conformance/agent`, whose skills have the suite’s names.',
    settings: { ...settings, expose: ['generic', 'skills'], toolPrefix: '', wait: { taskGrace: '0s' } },
    start: () => begin('skills', peer('suite-agent'), ['--listen', '127.0.0.1:0'], modes[1].settings),
    stop: end,
    // What is repeated because it depends on the order of things: one list
    // after the other, the lists at the same time. The scenario of the first
    // changes the agent's card, so that it may not run beside itself.
    repeat: [
      ['server-stateless'],
      ['tools-call-with-progress', 'tasks-lifecycle', 'tasks-mrtr-composition'],
      ['tasks-mrtr-input', 'tasks-dispatch-and-envelope', 'tasks-request-headers', 'tasks-required-task-error'],
      ['tasks-capability-negotiation', 'tasks-wire-fields', 'tasks-request-state-removal'],
    ],
  },
];
