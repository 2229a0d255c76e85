// @modelcontextprotocol/sdk 1.x on the 2025-11-25 wire.
//   node clients/legacy.mjs URL ALIAS…
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { steps } from './steps.mjs';

const [url, ...agents] = process.argv.slice(2);
const client = new Client({ name: 'conformance-legacy', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const calls = await steps({
  list: async () => (await client.listTools()).tools.map((t) => t.name),
  call: (name, args) => client.callTool({ name, arguments: args }),
}, agents);
await client.close();
console.log(`ok legacy: ${calls} calls`);
