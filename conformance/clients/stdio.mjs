// The clients' own stdio transports, which start "a2agate stdio" themselves:
// the turns of all clients, then what a pipe must carry as well: questions and
// progress in mid-call, a cancelled call, many calls at once, and an end.
//   node clients/stdio.mjs legacy|modern GATEWAY CONFIG ALIAS…
import assert from 'node:assert/strict';
import { Client as Modern } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio';
import { Client as Legacy } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { drive, words } from './steps.mjs';

const [era, command, config, ...agents] = process.argv.slice(2);
const last = agents.slice(-1);
const transports = [];
const info = { name: 'conformance-stdio', version: '1.0.0' };

const eras = {
  legacy: {
    make: (capabilities) => new Legacy(info, { capabilities }),
    Transport: LegacyTransport,
    question: ElicitRequestSchema,
    call: (client, name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  },
  modern: {
    make: (capabilities) => new Modern(info, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    Transport: ModernTransport,
    question: 'elicitation/create',
    call: (client, name, args, options) => client.callTool({ name, arguments: args }, options),
  },
};
const { make, Transport, question, call: callBy } = eras[era];

async function connect(capabilities) {
  const client = make(capabilities);
  const transport = new Transport({ command, args: ['stdio', '--config', config], stderr: 'pipe' });
  transports.push(transport);
  if (capabilities.elicitation) {
    client.setRequestHandler(question, async (request) => {
      assert.match(request.params.message, /size/);
      return { action: 'accept', content: { answer: 'large' } };
    });
  }
  await client.connect(transport);
  return client;
}

const client = await connect({});
const asked = await connect({ elicitation: { form: {} } });

const ok = await drive(`stdio, ${era}`, {
  list: async () => (await client.listTools()).tools.map((t) => t.name),
  call: (name, args, { by = client, ...options } = {}) => callBy(by, name, args, options),
  more: {
    'a question in the call': {
      run: async (agent, call) => {
        assert.match(words(await call('a2a_send_message', { agent, text: 'ask size' }, { by: asked })), /= large/);
      },
    },
    progress: {
      run: async (agent, call) => {
        const seen = [];
        await call('a2a_send_message', { agent, text: 'progress 3 1' }, { onprogress: (p) => seen.push(p.progress) });
        assert.ok(seen.length > 0, 'none came');
        assert.ok(seen.every((p, i) => i === 0 || p > seen[i - 1]), `must rise: ${seen}`);
      },
    },
    'a cancelled call': {
      run: async (agent, call) => {
        const stop = new AbortController();
        setTimeout(() => stop.abort(new Error('enough')), 300);
        await assert.rejects(call('a2a_send_message', { agent, text: 'slow 300' }, { signal: stop.signal }));
      },
    },
    'many calls at once': {
      only: last,
      run: async (agent, call) => {
        const all = await Promise.all(Array.from({ length: 30 }, (_, i) => call('a2a_send_message', { agent, text: `task ${i}-` })));
        all.forEach((r, i) => assert.ok(words(r).includes(`-${[...String(i)].reverse().join('')}`), words(r)));
      },
    },
    'an end': {
      only: last,
      run: async () => {
        const pids = transports.map((t) => t.pid);
        const start = Date.now();
        await Promise.all([client.close(), asked.close()]);
        // The transports close the input, and two seconds later send a signal.
        assert.ok(Date.now() - start < 1900, `it took ${Date.now() - start} ms: it did not end by itself`);
        for (const pid of pids) assert.throws(() => process.kill(pid, 0), `process ${pid} still runs`);
      },
    },
  },
}, agents);
process.exit(ok ? 0 : 1);
