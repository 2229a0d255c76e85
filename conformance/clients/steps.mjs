// What every client does with every agent: the four tools, once each and in
// the turns a model would take. A client passes in how it calls a tool.
import assert from 'node:assert/strict';

const words = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');

// steps(client, agents): client has list() → tool names and call(name, args) →
// result; returns how many calls were checked.
export async function steps(client, agents) {
  const names = await client.list();
  for (const name of ['a2a_discover', 'a2a_send_message', 'a2a_get_task', 'a2a_cancel_task']) {
    assert.ok(names.includes(name), `tools/list has no ${name}: ${names}`);
  }
  let calls = 0;
  const call = async (name, args) => {
    calls++;
    const result = await client.call(name, args);
    assert.ok(result.content.length > 0, `${name} ${JSON.stringify(args)}: empty content`);
    return result;
  };
  const all = await call('a2a_discover', {});
  for (const agent of agents) {
    assert.ok(words(all).includes(agent), `a2a_discover does not list ${agent}: ${words(all)}`);
    const card = await call('a2a_discover', { agent });
    assert.ok(card.structuredContent.name, `the card of ${agent} has no name`);

    const echo = await call('a2a_send_message', { agent, text: 'echo hello there' });
    assert.ok(!echo.isError, words(echo));
    assert.match(words(echo), /hello there/);
    assert.equal(echo.structuredContent.status, 'completed');

    const task = await call('a2a_send_message', { agent, text: 'task abc' });
    assert.match(words(task), /cba/);
    assert.match(task.structuredContent.taskHandle, /^tk_[a-z0-9]{26}$/);
    const got = await call('a2a_get_task', { taskHandle: task.structuredContent.taskHandle });
    assert.equal(got.structuredContent.status, 'completed');
    assert.match(words(got), /cba/);

    const question = await call('a2a_send_message', { agent, text: 'ask size' });
    assert.equal(question.structuredContent.status, 'input_required', words(question));
    const answer = await call('a2a_send_message', { taskHandle: question.structuredContent.taskHandle, text: 'large' });
    assert.equal(answer.structuredContent.status, 'completed', words(answer));
    assert.match(words(answer), /= large/);
    assert.equal(answer.structuredContent.taskHandle, question.structuredContent.taskHandle);

    const slow = await call('a2a_send_message', { agent, text: 'slow 30', blocking: false });
    assert.equal(slow.structuredContent.status, 'working', words(slow));
    const cancelled = await call('a2a_cancel_task', { taskHandle: slow.structuredContent.taskHandle });
    assert.equal(cancelled.structuredContent.status, 'cancelled', words(cancelled));

    const failed = await call('a2a_send_message', { agent, text: 'fail on purpose' });
    assert.equal(failed.isError, true);
    assert.match(words(failed), /on purpose/);
  }
  const lost = await call('a2a_get_task', { taskHandle: 'tk_aaaaaaaaaaaaaaaaaaaaaaaaaa' });
  assert.equal(lost.isError, true);
  assert.match(words(lost), /tk_aaaaaaaaaaaaaaaaaaaaaaaaaa/);
  return calls;
}
