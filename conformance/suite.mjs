// The official MCP conformance suite against the built gateway.
//
//   node suite.mjs [--repeat N] [--only MODE]
//
// For each mode (modes.mjs) it runs, on the release of the suite that is
// pinned, the requirement set and every applicable scenario of each revision,
// and on the release before it the requirement sets once more. It reads every
// checks.json, never the exit code, and compares each check with the baseline
// of that mode and revision (baseline/MODE-REVISION.yml). What fails without a
// line there fails the run, and so does a line that nothing needs; no line may
// excuse what every tools server must do (classes.mjs).
//
// --repeat N, or REPEAT in the environment, repeats the scenarios that depend
// on the order of things N times. Each mode leaves results/report-MODE.json, from
// which report.mjs makes REPORT.md.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { baseline, checks, excuses, listed, state, green, unused, verdict } from './checks.mjs';
import { classOf } from './classes.mjs';
import { here, results, run, stopAll } from './lib.mjs';
import { modes } from './modes.mjs';

const node = process.execPath;
const { values: flags } = parseArgs({ options: { repeat: { type: 'string', default: process.env.REPEAT ?? '0' }, only: { type: 'string' } } });
const repeats = Number(flags.repeat);
if (!Number.isInteger(repeats) || repeats < 0) throw new Error(`--repeat ${flags.repeat}: not a number of repetitions`);

const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'];
const scoredRevisions = revisions.slice(0, 2);
const suites = [
  { name: 'alpha.12', cli: join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js'), whole: true },
  { name: 'alpha.11', cli: join(here, 'node_modules/conformance-alpha11/dist/index.js'), whole: false },
];
// Beyond both lists: scenarios of extensions that no list of a revision has.
const extra = ['sep-2640-skills-directory', 'sep-2640-skills-enumeration', 'sep-2640-skills-manifest'];

const dir = join(results, 'suite');
let failed = 0;
let passed = 0;

// settle prints one run's verdict and counts it.
function settle(what, scenarios, surprises) {
  const states = [...(scenarios ?? new Map()).values()].map(state);
  console.log(`suite ${what}: ${states.filter(green).length} of ${states.length} scenarios green${surprises.length > 0 ? ', FAILED' : ''}`);
  for (const line of surprises) console.log(`  ${line}`);
  if (surprises.length > 0) failed++;
  else passed++;
}

async function conformance(cli, where, url, args, within) {
  const out = join(dir, where);
  mkdirSync(out, { recursive: true });
  await run(node, [cli, 'server', '--url', url, ...args, '-o', out], { within });
  return out;
}

async function list(cli, ...args) {
  const { out } = await run(node, [cli, 'list', ...args], { within: 60_000 });
  return listed(out);
}

function wantedBy(mode, revision) {
  const name = `baseline/${mode.name}-${revision}.yml`;
  const path = join(here, name);
  return existsSync(path) ? baseline(readFileSync(path, 'utf8'), name) : new Map();
}

// required runs a requirement set; it returns the scenarios and which of them
// are scored.
async function required(suite, mode, url, revision, wanted) {
  const { scored, besides } = await list(suite.cli, '--requirements', revision);
  const out = await conformance(suite.cli, `${mode.name}-${revision}-${suite.name}`, url, ['--requirements', revision], 300_000);
  const scenarios = checks(out);
  settle(`${suite.name} ${mode.name} ${revision} requirements`, scenarios, verdict(scenarios, wanted, [...scored, ...besides]));
  return { scenarios, scored };
}

async function everything(suite, mode, url, revision, wanted) {
  const { scored } = await list(suite.cli, '--server', '--spec-version', revision);
  const out = await conformance(suite.cli, `${mode.name}-${revision}-${suite.name}-all`, url, ['--suite', 'all', '--spec-version', revision], 300_000);
  if (revision === '2026-07-28') {
    for (const scenario of extra) await conformance(suite.cli, `${mode.name}-${revision}-${suite.name}-all`, url, ['--scenario', scenario], 60_000);
  }
  const scenarios = checks(out);
  settle(`${suite.name} ${mode.name} ${revision} all`, scenarios, verdict(scenarios, wanted, scored));
  return scenarios;
}

// repeat runs the lists of a mode at the same time, each n times over.
async function repeat(suite, mode, url, wanted, n) {
  const rounds = mode.repeat.map(async (scenarios, lane) => {
    const surprises = [];
    for (let i = 1; i <= n; i++) {
      for (const scenario of scenarios) {
        // Tasks are off the timeline of revisions: the suite takes their wire by itself.
        const wire = scenario.startsWith('tasks-') ? [] : ['--spec-version', '2026-07-28'];
        const out = await conformance(suite.cli, `repeat-${lane}/${scenario}-${i}`, url, ['--scenario', scenario, ...wire], 120_000);
        surprises.push(...verdict(checks(out), wanted, [scenario]).map((line) => `${line} (time ${i} of ${n})`));
      }
    }
    return surprises;
  });
  const surprises = (await Promise.all(rounds)).flat();
  const names = mode.repeat.flat();
  console.log(`suite ${suite.name} ${mode.name}: ${names.length} scenarios ${n} times${surprises.length > 0 ? ', FAILED' : ''}`);
  for (const line of surprises) console.log(`  ${line}`);
  if (surprises.length > 0) failed++;
  else passed++;
}

// plain is a run as results/suite.json has it: without times, so that two runs
// write the same.
function plain(scenarios) {
  return Object.fromEntries([...scenarios].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, seen]) => [name, {
    class: classOf(name), state: state(seen),
    bad: [...seen.values()].filter((c) => !green(state(new Map([[c.id, c]])))).map((c) => c.id).sort(),
  }]));
}

async function runMode(mode) {
  const { url } = await mode.start();
  const report = { name: mode.name, revisions: {} };
  for (const revision of revisions) {
    const wanted = wantedBy(mode, revision);
    const runs = [];
    const entry = { reasons: Object.fromEntries(wanted) };
    for (const suite of suites) {
      if (scoredRevisions.includes(revision)) {
        const { scenarios, scored } = await required(suite, mode, url, revision, wanted);
        runs.push(scenarios);
        if (suite.whole) Object.assign(entry, { scored, required: plain(scenarios) });
        else entry.before = Object.fromEntries(Object.entries(plain(scenarios)).map(([name, s]) => [name, s.state]));
      }
      if (suite.whole) {
        const scenarios = await everything(suite, mode, url, revision, wanted);
        runs.push(scenarios);
        entry.all = plain(scenarios);
      }
    }
    const lines = [...unused(runs, wanted), ...(mode.name === 'four-tools' ? excuses(wanted, classOf) : [])];
    if (lines.length > 0) settle(`${mode.name} ${revision} baseline`, undefined, lines);
    report.revisions[revision] = entry;
  }
  if (mode.repeat && repeats > 0) await repeat(suites[0], mode, url, wantedBy(mode, '2026-07-28'), repeats);
  await mode.stop();
  return report;
}

rmSync(dir, { recursive: true, force: true });
try {
  const chosen = modes.filter((mode) => !flags.only || flags.only === mode.name);
  if (chosen.length === 0) throw new Error(`--only ${flags.only}: one of ${modes.map((m) => m.name)}`);
  for (const mode of chosen) {
    writeFileSync(join(results, `report-${mode.name}.json`), JSON.stringify(await runMode(mode), null, 2));
  }
} catch (err) {
  failed++;
  console.log(`FAIL suite: ${err.stack}`);
} finally {
  await stopAll();
}
console.log(`suite: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
