import assert from 'node:assert/strict';
import { test } from 'node:test';
import { report } from './report.mjs';

const scenario = (letter, state, bad = []) => ({ class: letter, state, bad });
const mode = (name, state) => ({
  name, title: name, about: `${name} is this.`,
  revisions: {
    '2026-07-28': {
      scored: ['tools-list', 'tools-call-audio', 'server-stateless'],
      required: {
        'tools-list': scenario('A', 'pass'), 'tools-call-audio': scenario('B', state, state === 'pass' ? [] : ['tools-call-audio']),
        'server-stateless': scenario('A', 'fail', ['sep-2575-missing-capability-http-400']), 'tasks-lifecycle': scenario('B', state),
      },
      before: { 'tools-list': 'pass', 'tools-call-audio': 'fail', 'server-stateless': 'fail' },
      all: { 'sep-2640-skills-manifest': scenario('C', 'skip') },
      reasons: { 'server-stateless:sep-2575-missing-capability-http-400': 'no agent can' },
    },
  },
});
const interop = { aliases: ['go-10-rpc', 'js-plain'], columns: [{ label: 'a client', agents: { 'go-10-rpc': true, 'js-plain': false } }, { label: 'another', agents: {} }] };
const text = () => report([mode('bare', 'fail'), mode('full', 'pass')], interop, { node: '1', suite: '2', before: '3' });

test('says scores, classes, reasons and what nobody tried', () => {
  for (const want of ['| 2026-07-28 | **1 of 3** scored | 1 of 3 on alpha.11 | **2 of 3** scored | 1 of 3 on alpha.11 |',
    '| A | every tools server | 2 of 2 | 2 of 2 |', '| B | a tool of the suite’s, as a skill | 0 of 2 | 2 of 2 |',
    '| server-stateless | A |  | pass, but for checks of class N | pass, but for checks of class N |',
    '| tasks-lifecycle | B | no | fail | pass |', '| sep-2640-skills-manifest | C | no | n/a | n/a |',
    '| `server-stateless:sep-2575-missing-capability-http-400` | 2026-07-28 | no agent can |',
    '| go, 1.0 rpc | pass | – |', '| js, plain | fail | – |']) {
    assert.ok(text().includes(want), `${want}\nis not in\n${text()}`);
  }
});

test('is the same each time and names no machine', () => {
  assert.equal(text(), text());
  assert.doesNotMatch(text(), /127\.0\.0\.1:\d|\/work\/|\/tmp\/|\/home\/|\d\d:\d\d:\d\d/);
});
