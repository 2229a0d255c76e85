// @modelcontextprotocol/client hears of new tools after the configuration file
// has changed.
//   node clients/reload.mjs URL CONFIG
// CONFIG is the file of the gateway at URL; its agents have one more afterwards.
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, config] = process.argv.slice(2);
const before = JSON.parse(readFileSync(config, 'utf8'));
const [first] = Object.values(before.agents);
let heard;
const changed = new Promise((resolve, reject) => {
  heard = resolve;
  setTimeout(() => reject(new Error('no tools/list_changed within 20 s of the change')), 20_000).unref();
});
const client = new Client({ name: 'conformance-reload', version: '1.0.0' }, {
  versionNegotiation: { mode: { pin: '2026-07-28' } },
  listChanged: { tools: { debounceMs: 0, onChanged: (err, tools) => { if (!err && tools.some((tool) => tool.name === 'later')) heard(); } } },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const had = (await client.listTools()).tools.length;
assert.ok(had > 0);
// As editors save: a new file in the place of the old one.
writeFileSync(`${config}.new`, JSON.stringify({ ...before, agents: { ...before.agents, later: { ...first, expose: ['generic', 'agents'] } } }, null, 2));
renameSync(`${config}.new`, config);
await changed;
const now = (await client.listTools()).tools.map((tool) => tool.name);
assert.ok(now.includes('later') && now.length > had, `${now}`);
await client.close();
console.log(`ok: ${now.length - had} new tool`);
process.exit(0);
