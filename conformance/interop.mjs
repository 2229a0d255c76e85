// Real MCP clients through the built gateway to real A2A agents.
//
// Agents: the project's fixture agent, one on @a2a-js/sdk, one on a2a-go, the
// latter two on each of four bindings. Clients: @modelcontextprotocol/client
// (2026-07-28), @modelcontextprotocol/sdk 1.x (2025-11-25), the inspector's
// --cli on both eras, mcp-go's client. Each takes the same turns with each
// agent (clients/steps.mjs). It prints one line a client and a closing line.
import assert from 'node:assert/strict';
import { writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { gateway, here, peer, results, run, start, stopAll } from './lib.mjs';

const node = process.execPath;
const bindings = ['1.0-rpc', '1.0-rest', '0.3-rpc', '0.3-rest'];
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

async function client(command, args) {
  const { code, out } = await run(command, args);
  assert.equal(code, 0, out.trim().slice(-3000));
  return out.trim().split('\n').at(-1);
}

async function inspector(url, era, args) {
  const { code, out } = await run(node, [
    join(here, 'node_modules/.bin/mcp-inspector'), '--cli', url, '--transport', 'http', '--protocol-era', era, ...args,
  ], { within: 60_000 });
  assert.ok(code === 0 || code === 5, `exit ${code}: ${out.slice(-2000)}`);
  return out;
}

try {
  mkdirSync(results, { recursive: true });
  const agents = { fixture: (await start('agent-fixture', gateway, ['agent', '--listen', '127.0.0.1:0'])).url };
  for (const binding of bindings) {
    agents[`js-${binding}`] = (await start(`agent-js-${binding}`, node, ['jsagent/agent.mjs', '--interface', binding])).url;
    agents[`go-${binding}`] = (await start(`agent-go-${binding}`, peer('agent'), ['-interface', binding])).url;
  }
  agents['js-plain'] = (await start('agent-js-plain', node, ['jsagent/agent.mjs', '--plain'])).url;
  agents['go-plain'] = (await start('agent-go-plain', peer('agent'), ['-plain'])).url;

  const config = join(results, 'interop.json');
  const aliases = Object.keys(agents).map((a) => a.replaceAll('.', ''));
  writeFileSync(config, JSON.stringify({
    agents: Object.fromEntries(Object.entries(agents).map(([alias, url]) => [alias.replaceAll('.', ''), { url }])),
  }, null, 2));
  const { url } = await start('gateway-interop', gateway, ['serve', '--config', config, '--listen', '127.0.0.1:0'], { want: /http:\/\/127\.0\.0\.1:\d+\/mcp/ });

  await check('@modelcontextprotocol/client, 2026-07-28', () => client(node, ['clients/modern.mjs', url, ...aliases]));
  await check('@modelcontextprotocol/sdk, 2025-11-25', () => client(node, ['clients/legacy.mjs', url, ...aliases]));
  await check('mcp-go client', () => client(peer('client'), [url, ...aliases]));
  for (const era of ['modern', 'legacy']) {
    const tool = (name, ...args) => inspector(url, era, ['--method', 'tools/call', '--tool-name', name, ...args.flatMap((a) => ['--tool-arg', a])]);
    await check(`inspector --cli, ${era}: tools/list`, async () => {
      const out = await inspector(url, era, ['--method', 'tools/list']);
      for (const name of ['a2a_discover', 'a2a_send_message', 'a2a_get_task', 'a2a_cancel_task']) assert.ok(out.includes(name), out);
    });
    await check(`inspector --cli, ${era}: the four tools`, async () => {
      assert.match(await tool('a2a_discover', 'agent=fixture'), /skills/);
      assert.match(await tool('a2a_send_message', 'agent=fixture', 'text=echo hello there'), /hello there/);
      const slow = await tool('a2a_send_message', 'agent=fixture', 'text=slow 30', 'blocking=false');
      const [handle] = /tk_[a-z0-9]{26}/.exec(slow) ?? [];
      assert.ok(handle, slow);
      assert.match(await tool('a2a_get_task', `taskHandle=${handle}`), /working/);
      assert.match(await tool('a2a_cancel_task', `taskHandle=${handle}`), /cancelled/);
    });
  }
} catch (err) {
  failures.push('set-up');
  console.log(`FAIL set-up: ${err.stack}`);
} finally {
  await stopAll();
}
console.log(`interop: ${passed} passed, ${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);
