// One tool call over MCP 2026-07-28, as any client makes it: a POST, answered
// by one JSON message or by a stream of them that ends with the answer.

const revision = '2026-07-28';
const meta = 'io.modelcontextprotocol/';

// Fault is an answer that is no result. data is what a program would look at.
export class Fault extends Error {
  constructor(message, data) {
    super(message);
    this.data = data;
  }
}

// call calls a tool and returns its result. progress is told each progress
// message; ending signal closes the connection, which cancels the call.
// headers are further ones, such as those of the schema's x-mcp-header.
export async function call({ endpoint, headers, version, tool, args, signal, progress }) {
  const id = 1;
  const response = await fetch(endpoint, {
    method: 'POST',
    signal,
    redirect: 'error',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': revision,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': encoded(tool),
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: {
        name: tool,
        arguments: args,
        _meta: {
          [meta + 'protocolVersion']: revision,
          [meta + 'clientInfo']: { name: 'a2agate status page', version },
          [meta + 'clientCapabilities']: {},
          progressToken: id,
        },
      },
    }),
  });
  for await (const message of messages(response)) {
    if (message.method === 'notifications/progress') progress(message.params?.message ?? '');
    else if (message.error) throw new Fault(message.error.message ?? 'the gateway answered with an error', message.error);
    else if (message.result) return message.result;
  }
  throw new Fault(`the gateway answered ${response.status} and nothing that can be read`);
}

// messages are the JSON-RPC messages of a response, as they arrive.
async function* messages(response) {
  const kind = response.headers.get('Content-Type') ?? '';
  if (!kind.startsWith('text/event-stream')) {
    yield parsed(await response.text(), response.status);
    return;
  }
  let text = '';
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = text.slice(0, end).split('\n').filter((l) => l.startsWith('data:')).map((l) => l.slice(5).replace(/^ /, ''));
      text = text.slice(end + 2);
      if (data.length > 0) yield parsed(data.join('\n'), response.status);
    }
  }
}

function parsed(text, status) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Fault(`the gateway answered ${status} and no JSON`);
  }
}

// encoded is a header value: as it is where it can be, else in base64.
export function encoded(value) {
  const text = String(value);
  if (/^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$|^$/.test(text) && !text.startsWith('=?base64?')) return text;
  return '=?base64?' + btoa(String.fromCharCode(...new TextEncoder().encode(text))) + '?=';
}
