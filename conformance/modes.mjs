// The gateways that the official suite is run against.
import { gateway, start, stop } from './lib.mjs';

let started = [];
async function begin(...steps) {
  started = [];
  for (const step of steps) started.push(await step());
  return started.at(-1);
}
async function end() {
  for (const one of started.reverse()) await stop(one);
  started = [];
}

export const modes = [
  {
    // What every user has: the four tools and an agent that knows nothing of the suite.
    name: 'four-tools',
    extra: ['http-header-validation'],
    start: async () => {
      const agent = await begin(() => start('suite-agent', gateway, ['agent', '--listen', '127.0.0.1:0']));
      const front = await start('suite-gateway', gateway, ['serve', agent.url, '--listen', '127.0.0.1:0'], { want: /http:\/\/127\.0\.0\.1:\d+\/mcp/ });
      started.push(front);
      return front;
    },
    stop: end,
  },
];
