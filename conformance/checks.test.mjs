// node --test conformance/
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { baseline, checks, excuses, green, listed, state, unused, verdict } from './checks.mjs';
import { classOf } from './classes.mjs';

// run makes what checks returns out of {scenario: {check: status}}.
const run = (scenarios) => new Map(Object.entries(scenarios).map(([name, seen]) => [name,
  new Map(Object.entries(seen).map(([id, status]) => [id, { id, status, errorMessage: `${id} says why` }]))]));
const wanted = (...keys) => new Map(keys.map((key) => [key, 'a reason']));

describe('baseline', () => {
  test('reads lines with their reasons, and comments', () => {
    const got = baseline('# why it is here\nserver:\n\n  - a-b:c # no such thing in A2A\n  - a-b:$d-2   #  and this: that\n', 'x.yml');
    assert.deepEqual([...got], [['a-b:c', 'no such thing in A2A'], ['a-b:$d-2', 'and this: that']]);
  });
  for (const [name, text, want] of [
    ['a line without a reason', 'server:\n  - a:b\n', /^x.yml:2: says no reason/],
    ['an empty reason', '  - a:b #  \n', /^x.yml:1: /],
    ['a whole scenario', '  - a # it fails\n', /^x.yml:1: not "- scenario:check # why"/],
    ['a line twice', '  - a:b # one\n  - a:b # two\n', /^x.yml:2: a:b stands twice/],
    ['anything else', 'server:\n  a:b # why\n', /^x.yml:2: not /],
  ]) {
    test(`refuses ${name}`, () => assert.throws(() => baseline(text, 'x.yml'), { message: want }));
  }
  test('every file of the repository reads, and excuses no class A from the four tools', () => {
    const dir = join(dirname(fileURLToPath(import.meta.url)), 'baseline');
    const files = readdirSync(dir);
    assert.ok(files.length >= 4, `${files}`);
    for (const file of files) {
      const lines = baseline(readFileSync(join(dir, file), 'utf8'), file);
      assert.ok(lines.size > 0, file);
      if (file.startsWith('four-tools-')) assert.deepEqual(excuses(lines, classOf), []);
      else for (const key of lines.keys()) assert.equal(classOf(...key.split(/:(.*)/s)), 'N', `${file}: ${key}`);
    }
  });
});

describe('verdict', () => {
  test('is silent when all agrees', () => {
    assert.deepEqual(verdict(run({ s: { ok: 'SUCCESS', known: 'FAILURE', note: 'INFO', not: 'SKIPPED' } }), wanted('s:known'), ['s']), []);
  });
  test('reports a failure that no line names', () => {
    assert.deepEqual(verdict(run({ s: { x: 'FAILURE' } }), wanted('s:y', 't:x')), ['FAILURE s:x: x says why']);
  });
  test('reports a warning like a failure', () => {
    assert.deepEqual(verdict(run({ s: { x: 'WARNING' } }), wanted()), ['WARNING s:x: x says why']);
  });
  test('reports a line whose check passes', () => {
    assert.deepEqual(verdict(run({ s: { x: 'SUCCESS' } }), wanted('s:x')), ['stale baseline, it passes: s:x']);
  });
  test('leaves a skipped check to unused', () => {
    assert.deepEqual(verdict(run({ s: { x: 'SKIPPED' } }), wanted('s:x')), []);
  });
  test('reports what did not run, and what ran without a check', () => {
    assert.deepEqual(verdict(run({ s: {} }), wanted(), ['s', 't']), ['did not run: s', 'did not run: t']);
  });
});

describe('unused', () => {
  const runs = [run({ s: { x: 'FAILURE', z: 'SKIPPED' } }), run({ t: { y: 'WARNING' } })];
  test('takes a line that some run needs', () => assert.deepEqual(unused(runs, wanted('s:x', 't:y')), []));
  test('names lines that nothing needs', () => {
    assert.deepEqual(unused(runs, wanted('s:z', 's:gone', 'u:x')).map((line) => line.split(': ')[1]), ['s:z', 's:gone', 'u:x']);
  });
});

describe('state', () => {
  for (const [seen, want] of [
    [{ a: 'SUCCESS', b: 'FAILURE', c: 'WARNING' }, 'fail'], [{ a: 'SUCCESS', b: 'WARNING', c: 'SKIPPED' }, 'warn'],
    [{ a: 'SUCCESS', b: 'SKIPPED' }, 'pass'], [{ a: 'SKIPPED', 'wire-schema-valid': 'SUCCESS' }, 'skip'],
    [{ a: 'SKIPPED', 'wire-schema-valid': 'FAILURE' }, 'fail'], [{ 'wire-schema-valid': 'SUCCESS' }, 'pass'], [{ a: 'SKIPPED', b: 'INFO' }, 'skip'], [{ a: 'INFO' }, 'skip'],
  ]) {
    test(`${JSON.stringify(seen)} is ${want}`, () => assert.equal(state(run({ s: seen }).get('s')), want));
  }
  test('green is pass and skip', () => assert.deepEqual(['pass', 'skip', 'warn', 'fail'].map(green), [true, true, false, false]));
});

describe('checks', () => {
  let dir;
  before(() => { dir = mkdtempSync(join(tmpdir(), 'checks-')); });
  after(() => rmSync(dir, { recursive: true }));
  const write = (name, list) => {
    mkdirSync(join(dir, name), { recursive: true });
    writeFileSync(join(dir, name, 'checks.json'), JSON.stringify(list));
  };
  test('refuses an empty folder', () => assert.throws(() => checks(dir), /no checks.json below/));
  test('reads scenarios, their names with digits and dashes, and the worst of a check', () => {
    write('one/server-elicitation-sep1034-defaults-2026-11-30T14-51-22-727Z', [{ id: 'a', status: 'SUCCESS' }, { id: 'a', status: 'WARNING' }, { id: 'b', status: 'INFO' }]);
    write('server-json-schema-2020-12-2026-11-30T14-51-22-812Z', [{ id: 'c', status: 'SKIPPED' }]);
    write('two/server-json-schema-2020-12-2026-11-30T15-00-00-000Z', [{ id: 'c', status: 'FAILURE' }]);
    write('client-auth-2026-11-30T14-51-22-812Z', [{ id: 'd', status: 'FAILURE' }]);
    const got = checks(dir);
    assert.deepEqual([...got.keys()].sort(), ['elicitation-sep1034-defaults', 'json-schema-2020-12']);
    assert.equal(got.get('elicitation-sep1034-defaults').get('a').status, 'WARNING');
    assert.equal(got.get('json-schema-2020-12').get('c').status, 'FAILURE');
  });
  test('refuses a status that it does not know', () => {
    write('server-x-2026-11-30T14-51-22-727Z', [{ id: 'a', status: 'PERHAPS' }]);
    assert.throws(() => checks(dir), /check a has the status PERHAPS/);
  });
});

describe('listed', () => {
  const out = 'Required for R:\n\nServer scenarios (test against a server):\n  - one [R]\n  - two\n\nClient scenarios (test against a client):\n  - three\n\n' +
    'Run and reported, but never scored:\n  extension (2):\n    - four [client]\n    - five [server]\n';
  test('tells scored scenarios from those beside them', () => assert.deepEqual(listed(out), { scored: ['one', 'two'], besides: ['five'] }));
  test('refuses a list without scenarios', () => assert.throws(() => listed('nothing'), /no server scenarios/));
});

describe('classOf', () => {
  test('knows scenarios and single checks', () => {
    assert.equal(classOf('ping'), 'A');
    assert.equal(classOf('server-stateless', 'sep-2575-missing-capability-http-400'), 'N');
    assert.equal(classOf('server-stateless', 'anything else'), 'A');
  });
  test('refuses a scenario that nobody has read', () => assert.throws(() => classOf('brand-new'), /has no class/));
});
