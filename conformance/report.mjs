// Makes REPORT.md of results/report-MODE.json and results/interop.json. The
// same results make the same text: no times, no counts of calls, no paths of a
// machine.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { green } from './checks.mjs';
import { classNames, classOf } from './classes.mjs';
import { here, results } from './lib.mjs';
import { modes } from './modes.mjs';

const mark = { pass: 'pass', skip: 'n/a', warn: 'warning', fail: 'fail' };
const table = (head, rows) => [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

// beside names the classes of what fails in a scenario where none of it is of
// the scenario's own class, and is empty otherwise.
function beside(name, { class: own, bad }) {
  const others = bad.map((check) => classOf(name, check));
  return others.includes(own) ? [] : [...new Set(others)].sort();
}

// said is the cell of a scenario.
function said(name, entry) {
  if (!entry) return '–';
  const others = beside(name, entry);
  return others.length === 0 ? mark[entry.state] : `pass, but for checks of class ${others.join(' and ')}`;
}

// score counts the green ones among these scenarios, "26 of 37".
function score(scenarios, names) {
  return `${names.filter((name) => green(scenarios[name]?.state)).length} of ${names.length}`;
}

function scores(suite) {
  const rows = [];
  for (const revision of Object.keys(suite[0].revisions)) {
    const cells = suite.map(({ revisions }) => {
      const { scored, required, before, all } = revisions[revision];
      if (!scored) return [score(all, Object.keys(all)), ''];
      const was = scored.filter((name) => green(before[name])).length;
      return [`**${score(required, scored)}** scored`, `${was} of ${scored.length} on alpha.11`];
    });
    rows.push([revision, ...cells.flat()]);
  }
  return table(['revision', ...suite.flatMap((m) => [m.title, ''])], rows);
}

// classes counts by class, over everything that ran on a revision.
function classes(suite, revision) {
  const rows = Object.entries(classNames).map(([letter, what]) => {
    const cells = suite.map(({ revisions }) => {
      const every = { ...revisions[revision].all, ...revisions[revision].required };
      const names = Object.keys(every).filter((name) => every[name].class === letter);
      return `${names.filter((name) => green(every[name].state) || beside(name, every[name]).length > 0).length} of ${names.length}`;
    });
    return [letter, what, ...cells];
  });
  return table(['class', 'needs', ...suite.map((m) => m.title)], rows);
}

function scenarios(suite, revision) {
  const [first] = suite;
  const entry = first.revisions[revision];
  const every = { ...entry.all, ...entry.required };
  const names = Object.keys(every).sort((a, b) => (every[a].class + a < every[b].class + b ? -1 : 1));
  const rows = names.map((name) => [name, every[name].class, entry.scored && !entry.scored.includes(name) ? 'no' : '',
    ...suite.map(({ revisions }) => said(name, { ...revisions[revision].all, ...revisions[revision].required }[name]))]);
  return table(['scenario', 'class', 'scored', ...suite.map((m) => m.title)], rows);
}

// reasons lists what does not pass with the suite's agent, and why: what is
// true with it is true of every agent.
function reasons(mode) {
  const why = new Map();
  for (const [revision, entry] of Object.entries(mode.revisions)) {
    for (const [key, reason] of Object.entries(entry.reasons)) {
      const line = why.get(key) ?? { reason, revisions: [] };
      line.revisions.push(revision);
      why.set(key, line);
    }
  }
  const rows = [...why].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, { reason, revisions }]) => [`\`${key.replace(/^(.*):\1$/, '$1')}\``, revisions.join(', '), reason]);
  return table(['check', 'revisions', 'why'], rows);
}

function matrix({ aliases, columns }) {
  const name = (alias) => alias.replace(/^(\w+)-(\d)(\d)-(\w+)$/, '$1, $2.$3 $4').replace(/-/, ', ');
  const cell = { true: 'pass', false: 'fail', undefined: '–' };
  return table(['agent', ...columns.map((c) => c.label)], [...aliases].sort().map((alias) => [name(alias), ...columns.map((c) => cell[c.agents[alias]])]));
}

// report returns the text. suite has the title of each mode besides.
export function report(suite, interop, versions) {
  const revisions = Object.keys(suite[0].revisions);
  return `# Conformance

Written by \`make conformance\`; not to be edited. It says what passes and what does not, and why.

## How to repeat

\`\`\`
make conformance            # everything below, and this page
REPEAT=20 make conformance  # with the scenarios that depend on the order of things 20 times, as .ci/run does
conformance/run.sh suite    # the official suite alone
conformance/run.sh interop  # real clients and agents alone
\`\`\`

It needs Go and npm; it installs Node ${versions.node} and the programs at the versions of \`conformance/package-lock.json\`, among them
\`@modelcontextprotocol/conformance\` ${versions.suite} and, as a second run, ${versions.before}. Each run starts its agents and gateways on free loopback ports.
Every \`checks.json\` is read and each check compared with \`conformance/baseline/\`, where every line says why. A failure or warning without a line fails the
run; so does a line that nothing needs, a scenario that did not run, and a line that excuses the four tools from what every tools server must do.

## The official suite

The suite calls tools by fixed names. No A2A agent has them by chance, and the gateway knows none of them: a test reads its sources for the names. So it is run twice:

${suite.map((m) => `- **${m.title}**: ${m.about}`).join('\n')}

${scores(suite)}

Green means that no check failed or warned. 2025-06-18 and 2025-03-26 have no set of requirements; every scenario that applies was run.

### By class, 2026-07-28

Each scenario counts by what it asks for itself; single checks of another class inside it are named in the lists below.

${classes(suite, '2026-07-28')}

### What does not pass with the suite's agent, and why

${reasons(suite.at(-1))}

With the four tools alone, everything that needs a tool or prompt of the suite's fails besides; \`conformance/baseline/four-tools-*.yml\` has each line.

${revisions.map((revision) => `### Every scenario, ${revision}\n\n${scenarios(suite, revision)}`).join('\n\n')}

## Clients and agents

Each client takes the same turns with each agent: discover, a message, a message with every kind of part, a task, its history, a follow-up, a question and its answer,
slow work that is looked at and cancelled, a failure. \`@modelcontextprotocol/client\` is asked in the call (MRTR), \`@modelcontextprotocol/sdk\` in mid-call, and gets progress;
ext-tasks drives a task that asks and one that it cancels over \`tasks/*\`. \`fixture\` is the project's own scripted agent, \`js\` one on @a2a-js/sdk, \`go\` one on a2a-go;
\`plain\` cannot stream. Every request to these agents was recorded and read strictly: ProtoJSON without unknown fields for A2A 1.0, the types of a2a-go for 0.3.

${matrix(interop)}
`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const read = (name) => JSON.parse(readFileSync(join(results, name), 'utf8'));
  const { dependencies } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
  const suite = modes.map((mode) => ({ ...mode, ...read(`report-${mode.name}.json`) }));
  const text = report(suite, read('interop.json'), {
    node: dependencies.node, suite: dependencies['@modelcontextprotocol/conformance'], before: dependencies['conformance-alpha11'].split('@').at(-1),
  });
  writeFileSync(join(here, 'REPORT.md'), text);
  console.log('report: conformance/REPORT.md');
}
