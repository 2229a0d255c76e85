// Reading what the official suite left, and comparing it with what is
// expected. Pure but for reading files: checks.test.mjs holds it to its word.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

// worst orders the states of a check; a scenario is as bad as its worst check.
export const worst = { FAILURE: 4, WARNING: 3, SUCCESS: 2, SKIPPED: 1, INFO: 0 };
const bad = (status) => worst[status] >= worst.WARNING;

// baseline reads the text of a baseline: lines "- scenario:check # why". Each
// line needs its reason, and stands once. It returns scenario:check → reason.
export function baseline(text, name) {
  const wanted = new Map();
  for (const [n, line] of text.split('\n').entries()) {
    if (/^\s*(#.*)?$/.test(line) || line.trim() === 'server:') continue;
    const at = `${name}:${n + 1}`;
    const match = /^\s*-\s+([^\s:#]+):([^\s#]+)(?:\s+#\s*(\S.*))?\s*$/.exec(line);
    if (!match) throw new Error(`${at}: not "- scenario:check # why": ${line}`);
    if (!match[3]) throw new Error(`${at}: says no reason`);
    const key = `${match[1]}:${match[2]}`;
    if (wanted.has(key)) throw new Error(`${at}: ${key} stands twice`);
    wanted.set(key, match[3].trim());
  }
  return wanted;
}

// checks reads what one run left below dir: scenario → check id → the worst
// check of that id, {status, errorMessage, …}.
export function checks(dir) {
  const scenarios = new Map();
  for (const entry of readdirSync(dir, { recursive: true }).sort()) {
    const match = /(?:^|\/)server-(.+?)-\d{4}-\d\d-\d\dT[^/]*\/checks\.json$/.exec(entry.replaceAll('\\', '/'));
    if (!match) continue;
    const seen = scenarios.get(match[1]) ?? new Map();
    for (const check of JSON.parse(readFileSync(join(dir, entry), 'utf8'))) {
      if (!(check.status in worst)) throw new Error(`${entry}: check ${check.id} has the status ${check.status}`);
      const before = seen.get(check.id);
      if (!before || worst[check.status] > worst[before.status]) seen.set(check.id, check);
    }
    scenarios.set(match[1], seen);
  }
  if (scenarios.size === 0) throw new Error(`no checks.json below ${dir}`);
  return scenarios;
}

// verdict compares one run with its baseline and says what does not agree:
// failures and warnings that no line names, lines whose check passes, and
// scenarios of expected that did not run or checked nothing.
export function verdict(scenarios, wanted, expected = []) {
  const surprises = [];
  for (const scenario of expected) {
    if (!scenarios.get(scenario)?.size) surprises.push(`did not run: ${scenario}`);
  }
  for (const [scenario, seen] of scenarios) {
    for (const [id, check] of seen) {
      const key = `${scenario}:${id}`;
      if (bad(check.status) && !wanted.has(key)) surprises.push(`${check.status} ${key}: ${check.errorMessage ?? check.description ?? ''}`);
      if (wanted.has(key) && check.status === 'SUCCESS') surprises.push(`stale baseline, it passes: ${key}`);
    }
  }
  return surprises;
}

// unused names the lines of a baseline that no run has needed.
export function unused(runs, wanted) {
  return [...wanted.keys()].filter((key) => {
    const [scenario, id] = key.split(/:(.*)/s);
    return !runs.some((scenarios) => bad(scenarios.get(scenario)?.get(id)?.status));
  }).map((key) => `stale baseline, nothing fails there: ${key}`);
}

// state is what became of a scenario: pass, warn, fail, or skip when nothing
// of it applied. That its messages were in form says nothing by itself.
export function state(seen) {
  const every = [...seen.values()];
  const own = every.filter((check) => check.id !== 'wire-schema-valid' || worst[check.status] > worst.SUCCESS);
  const most = Math.max(...(own.length > 0 ? own : every).map((check) => worst[check.status]));
  if (most === worst.FAILURE) return 'fail';
  if (most === worst.WARNING) return 'warn';
  return most === worst.SUCCESS ? 'pass' : 'skip';
}

// green reports whether a state counts as conformant.
export const green = (what) => what === 'pass' || what === 'skip';

// excuses names lines that excuse what every tools server must do: a check
// of class A may not be in the baseline of the four tools. classOf takes a
// scenario and a check id.
export function excuses(wanted, classOf) {
  return [...wanted.keys()].filter((key) => classOf(...key.split(/:(.*)/s)) === 'A')
    .map((key) => `baseline excuses what every tools server must do: ${key}`);
}

// listed reads what "list --requirements" or "list --server" prints: the
// server scenarios that are scored, and those that are run besides.
export function listed(out) {
  const scored = [];
  const besides = [];
  let part = '';
  for (const line of out.split('\n')) {
    if (/^\S/.test(line)) part = line;
    const item = /^\s+- (\S+)(.*)$/.exec(line);
    if (!item) continue;
    if (part.startsWith('Server scenarios')) scored.push(item[1]);
    else if (part.startsWith('Run and reported') && item[2].includes('[server]')) besides.push(item[1]);
  }
  if (scored.length === 0) throw new Error(`no server scenarios in:\n${out}`);
  return { scored, besides };
}
