// Real MCP clients through the built gateway to real A2A agents.
//
// Agents: the project's fixture agent, one on @a2a-js/sdk, one on a2a-go, each
// on each of four bindings, the latter two also without streams. Clients:
// @modelcontextprotocol/client (2026-07-28), with ext-tasks for the tasks
// extension, @modelcontextprotocol/sdk 1.x (2025-11-25), mcp-go's client, the
// inspector's --cli on both eras (inspector.mjs). The others take the same turns
// with each agent (clients/steps.mjs). What the gateway sends to the agents is recorded on the
// way and read strictly by gopeers/strict.
//
// It prints one line a client and a closing line, and writes
// results/interop.json, from which report.mjs makes REPORT.md.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect, inspected } from './inspector.mjs';
import { gateway, peer, results, run, start, stopAll } from './lib.mjs';
import { recorder } from './record.mjs';

const node = process.execPath;
const bindings = ['1.0-rpc', '1.0-rest', '0.3-rpc', '0.3-rest'];
const clean = (alias) => alias.replaceAll('.', '');
const columns = [];
let passed = 0;
const failures = [];

async function check(name, action) {
  try {
    const said = await action();
    passed++;
    console.log(`ok   ${name}${said ? `: ${said}` : ''}`);
  } catch (err) {
    failures.push(name);
    console.log(`FAIL ${name}: ${err.message}`);
  }
}

// client runs one that prints a report (clients/steps.mjs) for these aliases.
async function client(label, command, args, aliases) {
  await check(label, async () => {
    const { code, out } = await run(command, [...args, ...aliases], { within: 180_000 });
    let report;
    try {
      report = JSON.parse(out.trim().split('\n').at(-1));
    } catch {
      throw new Error(`no report, exit ${code}: ${out.trim().slice(-3000)}`);
    }
    columns.push({ label, agents: Object.fromEntries(aliases.map((a) => [a, report.agents[a] === 'ok'])) });
    const bad = aliases.filter((a) => report.agents[a] !== 'ok');
    assert.equal(bad.length, 0, bad.map((a) => `\n  ${a}: ${report.agents[a]}`).join(''));
    assert.equal(code, 0, out.trim().slice(-3000));
    return `${report.calls} calls, ${aliases.length} agents`;
  });
}

// startAgents returns alias → URL.
async function startAgents() {
  const agents = {};
  for (const binding of bindings) {
    const [version, wire] = binding.split('-');
    const fixture = ['agent', '--listen', '127.0.0.1:0', '--protocol', version, '--binding', wire === 'rpc' ? 'JSONRPC' : 'HTTP+JSON'];
    agents[`fixture-${binding}`] = (await start(`agent-fixture-${binding}`, gateway, fixture)).url;
    agents[`js-${binding}`] = (await start(`agent-js-${binding}`, node, ['jsagent/agent.mjs', '--interface', binding])).url;
    agents[`go-${binding}`] = (await start(`agent-go-${binding}`, peer('agent'), ['-interface', binding])).url;
  }
  agents['js-plain'] = (await start('agent-js-plain', node, ['jsagent/agent.mjs', '--plain'])).url;
  agents['go-plain'] = (await start('agent-go-plain', peer('agent'), ['-plain'])).url;
  return agents;
}

// startGateway returns the URL of a gateway in front of these agents.
async function startGateway(name, agents, settings = {}) {
  const config = join(results, `${name}.json`);
  writeFileSync(config, JSON.stringify({ agents, ...settings }, null, 2));
  const { url } = await start(name, gateway, ['serve', '--config', config, '--listen', '127.0.0.1:0'], { want: /http:\/\/127\.0\.0\.1:\d+\/mcp/ });
  return url;
}

const record = join(results, 'a2a-requests.jsonl');
const tape = recorder(record);
try {
  mkdirSync(results, { recursive: true });
  rmSync(join(results, 'interop.json'), { force: true });
  const agents = await startAgents();
  const names = Object.keys(agents);
  const aliases = names.map(clean);
  const direct = await startGateway('gateway-interop', Object.fromEntries(names.map((name) => [clean(name), { url: agents[name] }])));
  const recorded = await startGateway('gateway-recorded', Object.fromEntries(await Promise.all(names.map(async (name) => (
    [clean(name), { url: await tape.through(clean(name), agents[name]), urlPolicy: 'configured' }])))), { wait: { taskGrace: '0s' } });

  await client('@modelcontextprotocol/client, 2026-07-28', node, ['clients/modern.mjs', direct], aliases);
  await client('@modelcontextprotocol/sdk 1.x, 2025-11-25', node, ['clients/legacy.mjs', direct], aliases);
  await client('mcp-go, 2025-11-25', peer('client'), [direct], aliases);
  for (const era of ['legacy', 'modern']) {
    await client(`stdio, ${era}`, node, ['clients/stdio.mjs', era, gateway, join(results, 'gateway-interop.json')], aliases.filter((a) => a.startsWith('fixture')));
  }
  await client('ext-tasks, 2026-07-28', node, ['clients/tasks.mjs', recorded], aliases.filter((a) => a.startsWith('fixture')));
  const agent = aliases.find((a) => a.startsWith('fixture'));
  const { agents: looked, ...settings } = inspected({ [agent]: { url: agents[names[aliases.indexOf(agent)]] } }, agent);
  const inspectedURL = await startGateway('gateway-inspected', looked, settings);
  for (const era of ['modern', 'legacy']) {
    await check(`inspector --cli, ${era}`, () => inspect(inspectedURL, era, agent));
    columns.push({ label: `inspector --cli, ${era}`, agents: { [agent]: !failures.includes(`inspector --cli, ${era}`) } });
  }
  await check('@modelcontextprotocol/client hears of a changed file', async () => {
    const url = await startGateway('gateway-reload', { first: { url: agents['fixture-1.0-rpc'] } });
    const { code, out } = await run(node, ['clients/reload.mjs', url, join(results, 'gateway-reload.json')], { within: 60_000 });
    assert.equal(code, 0, out.trim().slice(-3000));
    return out.trim().split('\n').at(-1);
  });
  // The same turns once more, written down on their way to the agents.
  const written = columns.length;
  await client('@modelcontextprotocol/client, recorded', node, ['clients/modern.mjs', recorded], aliases);
  columns.length = written;
  await check('what is sent is strict A2A', async () => {
    const { code, out } = await run(peer('strict'), [record, ...aliases], { within: 60_000 });
    assert.equal(code, 0, out.slice(-5000));
    return out.trim().split('\n').at(-1);
  });
  writeFileSync(join(results, 'interop.json'), JSON.stringify({ aliases, columns, failures }, null, 2));
} catch (err) {
  failures.push('set-up');
  console.log(`FAIL set-up: ${err.stack}`);
} finally {
  await stopAll();
  await tape.stop();
}
console.log(`interop: ${passed} passed, ${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);
