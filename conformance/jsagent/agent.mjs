// An A2A agent on @a2a-js/sdk, the second opinion on the A2A side: the same
// first words as the project's own fixture agent, on four bindings (1.0 and
// 0.3, JSON-RPC and HTTP+JSON).
//
//   node jsagent/agent.mjs [--interface 1.0-rpc|1.0-rest|0.3-rpc|0.3-rest] [--plain]
//
// It listens on a free loopback port and prints its base URL as one line.
// --interface makes the card offer that binding alone; --plain makes it say
// that it cannot stream.
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import express from 'express';
import { TaskState, Role } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const { values: flags } = parseArgs({
  options: { interface: { type: 'string' }, plain: { type: 'boolean', default: false } },
});

const text = (value) => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' });
const data = (value) => ({ content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: '' });
const message = (ctx, value) => ({
  messageId: randomUUID(), contextId: ctx.contextId, taskId: ctx.taskId, role: Role.ROLE_AGENT,
  parts: [text(value)], metadata: undefined, extensions: [], referenceTaskIds: [],
});

class Executor {
  canceled = new Set();
  async execute(ctx, bus) {
    const words = ctx.userMessage.parts.map((p) => (p.content?.$case === 'text' ? p.content.value : '')).join('');
    const [, command = '', rest = ''] = /^\s*([A-Za-z]+):?\s*([\s\S]*)$/.exec(words) ?? [];
    const status = (state, note) => AgentEvent.statusUpdate({
      taskId: ctx.taskId, contextId: ctx.contextId, metadata: undefined,
      status: { state, message: note === undefined ? undefined : message(ctx, note), timestamp: new Date().toISOString() },
    });
    const artifact = (parts, name = 'result') => AgentEvent.artifactUpdate({
      taskId: ctx.taskId, contextId: ctx.contextId, append: false, lastChunk: true, metadata: undefined,
      artifact: { artifactId: name, name, description: '', parts, metadata: undefined, extensions: [] },
    });
    const begin = (state) => bus.publish(AgentEvent.task(ctx.task ?? {
      id: ctx.taskId, contextId: ctx.contextId, artifacts: [], history: [ctx.userMessage], metadata: undefined,
      status: { state, message: undefined, timestamp: new Date().toISOString() },
    }));

    if (ctx.task?.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED) {
      begin(TaskState.TASK_STATE_WORKING);
      bus.publish(artifact([text(`answer = ${words}`)]));
      bus.publish(status(TaskState.TASK_STATE_COMPLETED));
      return bus.finished();
    }
    switch (command.toLowerCase()) {
      case 'task':
        begin(TaskState.TASK_STATE_SUBMITTED);
        bus.publish(status(TaskState.TASK_STATE_WORKING, 'Working on it.'));
        bus.publish(artifact([text([...rest].reverse().join(''))]));
        bus.publish(status(TaskState.TASK_STATE_COMPLETED));
        break;
      case 'data':
        begin(TaskState.TASK_STATE_WORKING);
        bus.publish(artifact([data({ answer: 42, echo: rest })], 'data'));
        bus.publish(status(TaskState.TASK_STATE_COMPLETED));
        break;
      case 'ask':
        begin(TaskState.TASK_STATE_WORKING);
        bus.publish(status(TaskState.TASK_STATE_INPUT_REQUIRED, `Which value should I use for ${rest || 'it'}?`));
        break;
      case 'slow': {
        begin(TaskState.TASK_STATE_WORKING);
        const until = Date.now() + Math.min(Number.parseFloat(rest) || 1, 60) * 1000;
        while (Date.now() < until) {
          if (this.canceled.delete(ctx.taskId)) {
            bus.publish(status(TaskState.TASK_STATE_CANCELED));
            return bus.finished();
          }
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        bus.publish(artifact([text('done')]));
        bus.publish(status(TaskState.TASK_STATE_COMPLETED));
        break;
      }
      case 'fail':
        begin(TaskState.TASK_STATE_WORKING);
        bus.publish(status(TaskState.TASK_STATE_FAILED, `It failed: ${rest}`));
        break;
      case 'reject':
        begin(TaskState.TASK_STATE_SUBMITTED);
        bus.publish(status(TaskState.TASK_STATE_REJECTED, `Refused: ${rest}`));
        break;
      default:
        bus.publish(AgentEvent.message({ ...message(ctx, rest || words), taskId: '' }));
    }
    bus.finished();
  }
  async cancelTask(taskId, bus) {
    this.canceled.add(taskId);
    bus.publish(AgentEvent.statusUpdate({
      taskId, contextId: '', metadata: undefined,
      status: { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: new Date().toISOString() },
    }));
  }
}

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const all = {
    '1.0-rpc': { url: `${base}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
    '1.0-rest': { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' },
    '0.3-rpc': { url: `${base}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '0.3', tenant: '' },
    '0.3-rest': { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3', tenant: '' },
  };
  const chosen = flags.interface ? [all[flags.interface]] : Object.values(all);
  if (chosen.includes(undefined)) throw new Error(`--interface ${flags.interface}: one of ${Object.keys(all)}`);
  const card = {
    name: 'JS agent', description: 'A scripted agent on the JavaScript SDK.', version: '1.0.0',
    supportedInterfaces: chosen, provider: undefined, securitySchemes: {}, securityRequirements: [],
    capabilities: { streaming: !flags.plain, pushNotifications: false, extendedAgentCard: false, extensions: [] },
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], signatures: [],
    skills: [{
      id: 'echo', name: 'Echo', description: 'Says what it was told.', tags: ['demo'], examples: ['echo hello'],
      inputModes: [], outputModes: [], securityRequirements: [],
    }],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } };
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat: { enabled: true } }));
  app.use('/a2a', jsonRpcHandler(options));
  app.use('/rest', restHandler(options));
  console.log(base);
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => { server.closeAllConnections(); server.close(() => process.exit(0)); });
