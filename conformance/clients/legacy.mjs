// @modelcontextprotocol/sdk 1.x on the 2025-11-25 wire: the turns of all
// clients, then progress, and as a client that can be asked in mid-call.
//   node clients/legacy.mjs URL ALIAS…
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { drive, words } from './steps.mjs';

const [url, ...agents] = process.argv.slice(2);
async function connect(capabilities) {
  const client = new Client({ name: 'conformance-legacy', version: '1.0.0' }, { capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const client = await connect({});
const asked = await connect({ elicitation: {} });
let reply;
const questions = [];
asked.setRequestHandler(ElicitRequestSchema, async (request) => {
  questions.push(request.params);
  return reply;
});

const ok = await drive('@modelcontextprotocol/sdk 1.x', {
  list: async () => (await client.listTools()).tools.map((t) => t.name),
  call: (name, args, { by = client, ...options } = {}) => by.callTool({ name, arguments: args }, undefined, options),
  more: {
    'a question in mid-call': {
      run: async (agent, call) => {
        questions.length = 0;
        reply = { action: 'accept', content: { answer: 'green' } };
        const done = await call('a2a_send_message', { agent, text: 'ask colour' }, { by: asked });
        assert.equal(questions.length, 1, 'the client was not asked once');
        assert.match(questions[0].message, /colour/);
        assert.equal(done.structuredContent.status, 'completed', words(done));
        assert.match(words(done), /= green/);

        reply = { action: 'cancel' };
        const dismissed = await call('a2a_send_message', { agent, text: 'ask colour' }, { by: asked });
        assert.equal(dismissed.structuredContent.status, 'input_required', words(dismissed));
      },
    },
    progress: {
      only: agents.filter((alias) => alias.startsWith('fixture')),
      run: async (agent, call) => {
        const notes = [];
        const done = await call('a2a_send_message', { agent, text: 'progress 4 0.6' }, { onprogress: (note) => notes.push(note) });
        assert.equal(done.structuredContent.status, 'completed', words(done));
        assert.ok(notes.length >= 3, `${notes.length} notes of progress`);
        for (let i = 1; i < notes.length; i++) assert.ok(notes[i].progress > notes[i - 1].progress, JSON.stringify(notes));
        assert.ok(notes.some((note) => note.message), JSON.stringify(notes));
      },
    },
  },
}, agents);
await client.close();
await asked.close();
process.exit(ok ? 0 : 1);
