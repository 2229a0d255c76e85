// What every client does with every agent: the four tools, once each and in
// the turns a model would take. A client passes in how it calls a tool.
import assert from 'node:assert/strict';

export const words = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');

// drive takes the turns with each agent. client has list() → tool names,
// call(name, args) → result, and more: {what: async (agent, call) => …}, what
// this client can do besides; only names the agents that know the words for
// it, all without it. It prints one line of JSON, {client, calls, agents:
// {alias: "ok" or what went wrong}}, and returns whether all went well.
export async function drive(name, client, agents) {
  const report = { client: name, calls: 0, agents: {} };
  const call = async (tool, args, options) => {
    report.calls++;
    const result = await client.call(tool, args, options);
    assert.ok(result.content.length > 0, `${tool} ${JSON.stringify(args)}: empty content`);
    return result;
  };
  try {
    await start(client, call, agents);
    // All agents at once, as an editor with several windows would; what a
    // client can do besides needs its full attention, one agent at a time.
    await Promise.all(agents.map((agent) => turns(call, agent).catch((err) => { report.agents[agent] = err.message; })));
    for (const agent of agents) {
      for (const [what, { only = agents, run }] of Object.entries(client.more ?? {})) {
        if (!only.includes(agent)) continue;
        await run(agent, call).catch((err) => { report.agents[agent] ??= `${what}: ${err.message}`; });
      }
      report.agents[agent] ??= 'ok';
    }
  } catch (err) {
    for (const agent of agents) report.agents[agent] ??= err.message;
  }
  console.log(JSON.stringify(report));
  return Object.values(report.agents).every((said) => said === 'ok');
}

async function start(client, call, agents) {
  const names = await client.list();
  for (const name of ['a2a_discover', 'a2a_send_message', 'a2a_get_task', 'a2a_cancel_task']) {
    assert.ok(names.includes(name), `tools/list has no ${name}: ${names}`);
  }
  const all = await call('a2a_discover', {});
  for (const agent of agents) assert.ok(words(all).includes(agent), `a2a_discover does not list ${agent}: ${words(all)}`);
  const lost = await call('a2a_get_task', { taskHandle: 'tk_aaaaaaaaaaaaaaaaaaaaaaaaaa' });
  assert.equal(lost.isError, true);
  assert.match(words(lost), /tk_aaaaaaaaaaaaaaaaaaaaaaaaaa/);
}

async function turns(call, agent) {
  const card = await call('a2a_discover', { agent });
  assert.ok(card.structuredContent.name, `the card of ${agent} has no name`);

  const echo = await call('a2a_send_message', { agent, text: 'echo hello there' });
  assert.ok(!echo.isError, words(echo));
  assert.match(words(echo), /hello there/);
  assert.equal(echo.structuredContent.status, 'completed');

  const parts = await call('a2a_send_message', {
    agent, text: 'echo with all kinds of parts', data: { list: [1, 2.5, null, { deep: true }] }, metadata: { trace: 'interop' },
    files: [{ name: 'a.txt', mediaType: 'text/plain', bytes: Buffer.from('a file').toString('base64') }, { name: 'b.pdf', url: 'https://files.example.com/b.pdf' }],
  });
  assert.match(words(parts), /all kinds of parts/);

  const task = await call('a2a_send_message', { agent, text: 'task abc' });
  assert.match(words(task), /cba/);
  assert.match(task.structuredContent.taskHandle, /^tk_[a-z0-9]{26}$/);
  const got = await call('a2a_get_task', { taskHandle: task.structuredContent.taskHandle, historyLength: 5 });
  assert.equal(got.structuredContent.status, 'completed');
  assert.match(words(got), /cba/);
  const after = await call('a2a_send_message', { taskHandle: task.structuredContent.taskHandle, text: 'task def' });
  assert.match(words(after), /fed/);

  const question = await call('a2a_send_message', { agent, text: 'ask size' });
  assert.equal(question.structuredContent.status, 'input_required', words(question));
  const answer = await call('a2a_send_message', { taskHandle: question.structuredContent.taskHandle, text: 'large' });
  assert.equal(answer.structuredContent.status, 'completed', words(answer));
  assert.match(words(answer), /= large/);
  assert.equal(answer.structuredContent.taskHandle, question.structuredContent.taskHandle);

  const slow = await call('a2a_send_message', { agent, text: 'slow 30', blocking: false });
  assert.equal(slow.structuredContent.status, 'working', words(slow));
  const waited = await call('a2a_get_task', { taskHandle: slow.structuredContent.taskHandle, waitSeconds: 1 });
  assert.equal(waited.structuredContent.status, 'working', words(waited));
  const cancelled = await call('a2a_cancel_task', { taskHandle: slow.structuredContent.taskHandle });
  assert.equal(cancelled.structuredContent.status, 'cancelled', words(cancelled));

  const failed = await call('a2a_send_message', { agent, text: 'fail on purpose' });
  assert.equal(failed.isError, true);
  assert.match(words(failed), /on purpose/);
}
