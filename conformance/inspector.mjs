// The inspector's --cli against the gateway: everything it can list, call and
// read, on one wire. Each answer is read as JSON and judged by its content;
// whatever the inspector complains of on its way (schemas above all, which it
// lints) is a failure.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { here, run } from './lib.mjs';

// inspected are the settings of the gateway that is looked at: every kind of
// tool there is, one with a schema of its own.
export const inspected = (agents, alias) => ({
  agents: {
    ...agents,
    [alias]: {
      ...agents[alias],
      skills: { echo: { inputSchema: {
        type: 'object', properties: { text: { type: 'string', title: 'What', description: 'What to say.' }, times: { type: 'integer', minimum: 1 } },
        required: ['text'], additionalProperties: false,
      } } },
    },
  },
  expose: ['generic', 'agents', 'skills', 'query'],
});

// What the linter says of our tools, and no more: data is any JSON value by
// design, and every way to say so in words of types is warned of as well.
const known = ['a2a_send_message inputSchema.properties.data'];

// findings reads the linter's report: the tool and the path of each.
export function findings(said) {
  const found = [...said.matchAll(/^(?:Warning|Error): tool "([^"]+)"\n\s*Path: (\S+)/gm)].map(([, tool, path]) => `${tool} ${path}`);
  const [, errors, warnings] = /^(\d+) errors?, (\d+) warnings?/m.exec(said) ?? [, '0', '0'];
  assert.equal(found.length, Number(errors) + Number(warnings), `a report that is not understood: ${said}`);
  return found;
}

// inspect looks at everything through agent, which must be the fixture.
export async function inspect(url, era, agent) {
  const cli = async (method, args = [], { code: want = 0, silent = true } = {}) => {
    const { code, stdout, stderr } = await run(process.execPath, [
      join(here, 'node_modules/.bin/mcp-inspector'), '--cli', url, '--transport', 'http', '--protocol-era', era, '--method', method, ...args,
    ], { within: 60_000 });
    const what = `${method} ${args.join(' ')}`;
    assert.equal(code, want, `${what}: exit ${code}: ${stdout.slice(-2000)}${stderr.slice(-2000)}`);
    if (silent) assert.equal(stderr.trim(), '', `${what}: ${stderr}`);
    return { stderr, result: stdout.trim() ? JSON.parse(stdout) : undefined };
  };
  const call = async (name, args, options) => (await cli('tools/call', ['--tool-name', name, '--tool-args-json', JSON.stringify(args)], options)).result;
  const words = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');
  await tools(cli, call, words, agent);
  await prompts(cli, agent);
  await resources(cli, call, agent);
}

async function tools(cli, call, words, agent) {
  const { result: { tools: list }, stderr } = await cli('tools/list', ['--strict'], { silent: false });
  assert.deepEqual(findings(stderr), known);
  const names = list.map((tool) => tool.name);
  for (const name of ['a2a_discover', 'a2a_send_message', 'a2a_get_task', 'a2a_cancel_task', 'a2a_query', agent, `${agent}_echo`]) assert.ok(names.includes(name), `${names}`);
  const echo = list.find((tool) => tool.name === `${agent}_echo`);
  assert.equal(echo.inputSchema.properties.times.minimum, 1);

  const card = await call('a2a_discover', { agent });
  assert.ok(card.structuredContent.skills.length > 0, JSON.stringify(card));
  const reply = await call('a2a_send_message', { agent, text: 'echo hello there', data: { n: 1 } });
  assert.match(words(reply), /hello there/);
  assert.equal(reply.structuredContent.status, 'completed');
  assert.match(words(await call(agent, { message: 'echo to the agent' })), /to the agent/);
  assert.match(words(await call(`${agent}_echo`, { text: 'echo by its skill', times: 2 })), /by its skill/);
  const image = await call('a2a_send_message', { agent, text: 'image' });
  assert.ok(image.content.some((c) => c.type === 'image' && c.mimeType === 'image/png' && c.data), JSON.stringify(image).slice(0, 2000));
  const slow = await call('a2a_send_message', { agent, text: 'slow 30', blocking: false });
  const { taskHandle } = slow.structuredContent;
  assert.match(taskHandle, /^tk_[a-z0-9]{26}$/);
  assert.equal((await call('a2a_get_task', { taskHandle })).structuredContent.status, 'working');
  assert.equal((await call('a2a_cancel_task', { taskHandle })).structuredContent.status, 'cancelled');
  // 5 is the inspector's exit code for isError.
  const failed = await call('a2a_send_message', { agent, text: 'fail on purpose' }, { code: 5, silent: false });
  assert.match(words(failed), /on purpose/);
}

async function prompts(cli, agent) {
  const { result: { prompts: list } } = await cli('prompts/list');
  const echo = list.find((p) => p.name === `${agent}_echo`);
  assert.deepEqual(echo?.arguments.map((a) => [a.name, Boolean(a.required)]), [['text', true], ['times', false]], JSON.stringify(list).slice(0, 2000));
  const { result: got } = await cli('prompts/get', ['--prompt-name', echo.name, '--prompt-args', 'text=hello "there"', 'times=2']);
  assert.equal(got.messages.length, 1);
  assert.equal(got.messages[0].role, 'user');
  assert.match(got.messages[0].content.text, new RegExp(`tool ${agent}_echo `));
  assert.ok(got.messages[0].content.text.includes('{"text":"hello \\"there\\"","times":2}'), got.messages[0].content.text);
  const { stderr } = await cli('prompts/get', ['--prompt-name', echo.name], { code: 1, silent: false });
  assert.match(stderr, /needs the arguments text/);
}

async function resources(cli, call, agent) {
  const uri = `a2a://agents/${agent}/card`;
  const { result: { resources: list } } = await cli('resources/list');
  assert.equal(list.find((r) => r.uri === uri)?.mimeType, 'application/json', JSON.stringify(list));
  const { result: { resourceTemplates } } = await cli('resources/templates/list');
  assert.deepEqual(resourceTemplates.map((t) => t.uriTemplate), ['a2a://agents/{alias}/card', 'a2a://tasks/{taskHandle}/artifacts/{artifactId}']);
  const { result: card } = await cli('resources/read', ['--uri', uri]);
  assert.equal(card.contents[0].uri, uri);
  assert.ok(JSON.parse(card.contents[0].text).skills.length > 0);

  const task = await call('a2a_send_message', { agent, text: 'task abc' });
  const { taskHandle, artifacts: [{ artifactId }] } = task.structuredContent;
  const { result: artifact } = await cli('resources/read', ['--uri', `a2a://tasks/${taskHandle}/artifacts/${encodeURIComponent(artifactId)}`]);
  assert.equal(artifact.contents[0].text, 'cba');
  const { stderr } = await cli('resources/read', ['--uri', 'a2a://agents/nobody/card'], { code: 1, silent: false });
  assert.match(stderr, /nobody/);
}
