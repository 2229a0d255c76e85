// @modelcontextprotocol/client with @modelcontextprotocol/ext-tasks: a task
// that asks, over tasks/get and tasks/update, and one that is cancelled.
//   node clients/tasks.mjs URL ALIAS…
// The gateway at URL makes tasks at once (wait.taskGrace 0s).
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { words } from './steps.mjs';

const [url, ...agents] = process.argv.slice(2);
const protocolVersion = '2026-07-28';
const clientInfo = { name: 'conformance-tasks', version: '1.0.0' };
const clientCapabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } };
const report = { client: '@modelcontextprotocol/ext-tasks', calls: 0, agents: {} };
const methods = {};

// rawDispatch sends what the client's own codec does not know.
async function rawDispatch(request, { signal } = {}) {
  const { method, params } = request;
  methods[method] = (methods[method] ?? 0) + 1;
  const headers = {
    'content-type': 'application/json', accept: 'application/json, text/event-stream',
    'mcp-protocol-version': protocolVersion, 'mcp-method': method, 'mcp-name': params.taskId ?? params.name,
  };
  const id = ++report.calls;
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id, method, params }), signal });
  const body = await response.text();
  const text = response.headers.get('content-type').startsWith('text/event-stream')
    ? body.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6)).at(-1)
    : body;
  const answer = JSON.parse(text);
  assert.equal(answer.id, id);
  return answer.error ? { kind: 'error', error: answer.error } : { kind: 'result', result: answer.result };
}

const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: { pin: protocolVersion } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
let asked = 0;
const session = createTaskSessionFromClient(client, {
  endpointId: 'interop', rawDispatch, v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: async (request) => {
    asked++;
    assert.equal(request.kind, 'elicitation');
    const [field] = Object.keys(request.params.requestedSchema.properties);
    return { action: 'accept', content: { [field]: 'green' } };
  },
});

for (const agent of agents) {
  try {
    asked = 0;
    const asking = await session.callTool('a2a_send_message', { agent, text: 'worksask 0.5 colour' });
    assert.equal(asking.kind, 'task', 'the call did not become a task');
    const { outcome, lastTask } = await asking.settle();
    const result = resultFromTaskOutcome(outcome);
    assert.equal(asked, 1, `the client was asked ${asked} times`);
    assert.match(words(result), /= green/);
    assert.equal(lastTask.status, 'completed');

    const long = await session.callTool('a2a_send_message', { agent, text: 'slow 30' });
    assert.equal(long.kind, 'task');
    await long.cancel();
    assert.equal((await long.settle()).outcome.status, 'cancelled');
    report.agents[agent] = 'ok';
  } catch (err) {
    report.agents[agent] = err.message;
  }
}
await session.close();
await client.close();
for (const method of ['tools/call', 'tasks/get', 'tasks/update', 'tasks/cancel']) {
  if (!methods[method]) for (const agent of agents) report.agents[agent] = `${method} was never sent: ${JSON.stringify(methods)}`;
}
console.log(JSON.stringify(report));
process.exit(Object.values(report.agents).every((said) => said === 'ok') ? 0 : 1);
