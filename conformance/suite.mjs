// The official MCP conformance suite against the built gateway.
//
// For each mode (the four tools alone; with the suite's fixture agent behind
// the real translation path) and each revision it runs the requirement set,
// reads every checks.json (never the exit code), and compares each check with
// the baseline of that mode and revision. A failure or warning that is not in
// the baseline fails the run, and so does a baseline line that passes. Every
// baseline line says why, behind a #.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { here, results, run, stopAll } from './lib.mjs';
import { modes } from './modes.mjs';

const node = process.execPath;
const revisions = ['2026-07-28', '2025-11-25'];
const cli = join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

// baseline reads conformance/baseline/MODE-REVISION.yml: lines "- scenario:check # why".
function baseline(mode, revision) {
  const path = join(here, 'baseline', `${mode}-${revision}.yml`);
  const wanted = new Map();
  if (!existsSync(path)) return wanted;
  for (const [n, line] of readFileSync(path, 'utf8').split('\n').entries()) {
    const match = /^\s*-\s+(\S+?):(\S+)(?:\s+#\s*(.+))?$/.exec(line);
    if (!match) { if (/^\s*-/.test(line)) throw new Error(`${path}:${n + 1}: not "- scenario:check # why": ${line}`); continue; }
    if (!match[3]) throw new Error(`${path}:${n + 1}: says no reason`);
    wanted.set(`${match[1]}:${match[2]}`, match[3]);
  }
  return wanted;
}

const worst = { FAILURE: 4, WARNING: 3, SUCCESS: 2, SKIPPED: 1, INFO: 0 };

// checks reads what one run left: scenario → check id → worst status.
export function checks(dir) {
  const scenarios = new Map();
  for (const entry of readdirSync(dir, { recursive: true })) {
    const match = /(?:^|\/)server-(.+?)-\d{4}-\d\d-\d\dT[^/]*\/checks\.json$/.exec(entry);
    if (!match) continue;
    const seen = scenarios.get(match[1]) ?? new Map();
    for (const check of JSON.parse(readFileSync(join(dir, entry), 'utf8'))) {
      const before = seen.get(check.id);
      if (!before || worst[check.status] > worst[before.status]) seen.set(check.id, check);
    }
    scenarios.set(match[1], seen);
  }
  if (scenarios.size === 0) throw new Error(`no checks.json below ${dir}`);
  return scenarios;
}

// verdict compares one run with its baseline and says what does not agree.
export function verdict(scenarios, wanted) {
  const surprises = [];
  const used = new Set();
  for (const [scenario, seen] of scenarios) {
    for (const [id, check] of seen) {
      const bad = check.status === 'FAILURE' || check.status === 'WARNING';
      const key = `${scenario}:${id}`;
      if (bad && !wanted.has(key)) surprises.push(`${check.status} ${key}: ${check.errorMessage ?? check.description ?? ''}`);
      if (wanted.has(key)) { used.add(key); if (check.status === 'SUCCESS') surprises.push(`stale baseline, it passes: ${key}`); }
    }
  }
  return surprises;
}

const score = (scenarios) => {
  const states = [...scenarios.values()].map((seen) => Math.max(...[...seen.values()].map((c) => worst[c.status])));
  return { green: states.filter((s) => s <= 2).length, warn: states.filter((s) => s === 3).length, fail: states.filter((s) => s === 4).length };
};

let failed = 0;
let passed = 0;
rmSync(join(results, 'suite'), { recursive: true, force: true });
try {
  for (const mode of modes) {
    const gateway = await mode.start();
    for (const revision of revisions) {
      const dir = join(results, 'suite', `${mode.name}-${revision}`);
      mkdirSync(dir, { recursive: true });
      await run(node, [cli, 'server', '--url', gateway.url, '--requirements', revision, '-o', dir], { within: 600_000 });
      const extra = revision === '2026-07-28' ? mode.extra : [];
      for (const scenario of extra) {
        await run(node, [cli, 'server', '--url', gateway.url, '--scenario', scenario, '-o', dir], { within: 120_000 });
      }
      const scenarios = checks(dir);
      const surprises = verdict(scenarios, baseline(mode.name, revision));
      const { green, warn, fail } = score(scenarios);
      console.log(`suite ${mode.name} ${revision}: ${green} green, ${warn} with warnings, ${fail} failing of ${scenarios.size} scenarios`);
      for (const line of surprises) console.log(`  ${line}`);
      if (surprises.length > 0) failed++; else passed++;
    }
    await mode.stop();
  }
} catch (err) {
  failed++;
  console.log(`FAIL suite: ${err.stack}`);
} finally {
  await stopAll();
}
console.log(`suite: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
