// Starting, watching and ending the programs that the runs need. Every
// process started here is ended by its pid when the run is over, and every
// wait has a bound.
import { spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = dirname(fileURLToPath(import.meta.url));
export const root = dirname(here);
export const results = join(here, 'results');
mkdirSync(results, { recursive: true });
export const gateway = join(root, 'bin', 'a2agate');
export const peer = (name) => join(root, '.tmp', name);

const running = new Set();

// start runs a program and waits until it prints its URL: a line with
// http://127.0.0.1:PORT on either stream; with ready, until it prints that as
// well. It returns {url, child}; url is the match of want.
export async function start(name, command, args, { want = /http:\/\/127\.0\.0\.1:\d+(\/mcp)?/, ready = /(?:)/, within = 20_000, env = {} } = {}) {
  mkdirSync(results, { recursive: true });
  const log = openSync(join(results, `${name}.log`), 'w');
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env }, cwd: here });
  running.add(child);
  child.on('exit', () => running.delete(child));
  const { write } = await import('node:fs');
  const url = await new Promise((resolve, reject) => {
    let seen = '';
    const timer = setTimeout(() => reject(new Error(`${name} printed no URL within ${within} ms:\n${seen}`)), within);
    const take = (chunk) => {
      write(log, chunk, () => {});
      if (seen.length > 1 << 16) return;
      seen += chunk;
      const match = want.exec(seen);
      if (match && ready.test(seen)) { clearTimeout(timer); resolve(match[0]); }
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (err) => { clearTimeout(timer); reject(err); });
    child.on('exit', (code) => { clearTimeout(timer); reject(new Error(`${name} ended with ${code}:\n${seen}`)); });
  });
  return { url, child, name };
}

// run runs a program to its end and returns {code, out, stdout, stderr}, out
// being both streams as they came; past its bound it is ended and code is
// "timeout".
export function run(command, args, { within = 120_000, env = {}, cwd = here } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env }, cwd });
    running.add(child);
    let out = '', stdout = '', stderr = '';
    child.stdout.setEncoding('utf8');
    child.stderr.setEncoding('utf8');
    const timer = setTimeout(() => { child.kill('SIGKILL'); out += `\n[ended after ${within} ms]`; }, within);
    child.stdout.on('data', (c) => { out += c; stdout += c; });
    child.stderr.on('data', (c) => { out += c; stderr += c; });
    child.on('error', (err) => { clearTimeout(timer); running.delete(child); reject(err); });
    child.on('close', (code, signal) => { clearTimeout(timer); running.delete(child); resolve({ code: signal ? 'timeout' : code, out, stdout, stderr }); });
  });
}

// stop ends one started program and waits for it, at most five seconds.
export async function stop(started) {
  const { child } = started;
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
  await gone;
  clearTimeout(timer);
}

// stopAll ends whatever is still running.
export async function stopAll() {
  await Promise.all([...running].map((child) => stop({ child })));
}
