// @modelcontextprotocol/client on the 2026-07-28 wire.
//   node clients/modern.mjs URL ALIAS…
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { steps } from './steps.mjs';

const [url, ...agents] = process.argv.slice(2);
const client = new Client({ name: 'conformance-modern', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
assert.equal(client.getNegotiatedProtocolVersion?.() ?? '2026-07-28', '2026-07-28');
const calls = await steps({
  list: async () => (await client.listTools()).tools.map((t) => t.name),
  call: (name, args) => client.callTool({ name, arguments: args }),
}, agents);
await client.close();
console.log(`ok modern: ${calls} calls`);
