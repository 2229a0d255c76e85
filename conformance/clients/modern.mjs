// @modelcontextprotocol/client on the 2026-07-28 wire: the turns of all
// clients, then as a client that can be asked (MRTR).
//   node clients/modern.mjs URL ALIAS…
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { drive, words } from './steps.mjs';

const [url, ...agents] = process.argv.slice(2);
async function connect(capabilities) {
  const client = new Client({ name: 'conformance-modern', version: '1.0.0' }, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  assert.equal(client.getNegotiatedProtocolVersion?.() ?? '2026-07-28', '2026-07-28');
  return client;
}

const client = await connect({});
const asked = await connect({ elicitation: { form: {} } });
let reply;
const questions = [];
asked.setRequestHandler('elicitation/create', (request) => {
  questions.push(request.params);
  return reply;
});

const ok = await drive('@modelcontextprotocol/client', {
  list: async () => (await client.listTools()).tools.map((t) => t.name),
  call: (name, args, { by = client } = {}) => by.callTool({ name, arguments: args }),
  more: {
    'a question in the call': {
      run: async (agent, call) => {
        questions.length = 0;
        reply = { action: 'accept', content: { answer: 'green' } };
        const done = await call('a2a_send_message', { agent, text: 'ask colour' }, { by: asked });
        assert.equal(questions.length, 1, 'the client was not asked once');
        assert.match(questions[0].message, /colour/);
        assert.deepEqual(Object.keys(questions[0].requestedSchema.properties), ['answer']);
        assert.equal(done.structuredContent.status, 'completed', words(done));
        assert.match(words(done), /= green/);

        reply = { action: 'decline' };
        const declined = await call('a2a_send_message', { agent, text: 'ask colour' }, { by: asked });
        assert.equal(declined.structuredContent.status, 'input_required', words(declined));
        assert.match(words(declined), /tk_[a-z0-9]{26}/);
      },
    },
  },
}, agents);
await client.close();
await asked.close();
process.exit(ok ? 0 : 1);
