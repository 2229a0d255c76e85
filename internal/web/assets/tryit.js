// The form that calls a tool: its fields come from the tool's input schema.

import { call, encoded, Fault } from './mcp.js';

const field = (id) => document.getElementById(id);

// element makes an element with properties and children.
function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

// TryIt runs the form. session gives the headers of requests.
export class TryIt {
  #session;
  #status = null;
  #schema = ''; // the schema that the fields were made of, as text
  #kept = {}; // values by field name, kept from tool to tool
  #abort = null;
  #handles = null;

  constructor(session) {
    this.#session = session;
    field('tryit').addEventListener('submit', (e) => {
      e.preventDefault();
      this.#run();
    });
    field('tool').addEventListener('change', () => this.#show());
    field('stop').addEventListener('click', () => this.#abort?.abort());
    field('continue').addEventListener('click', () => this.#continue());
    field('tryit').hidden = false;
  }

  // update takes the tools of a new status. What is typed stays.
  update(status) {
    this.#status = status;
    const select = field('tool');
    const names = status.tools.map((t) => t.name);
    if (names.join() !== [...select.options].map((o) => o.value).join()) {
      const before = select.value;
      select.replaceChildren(...status.tools.map((t) => element('option', { value: t.name, textContent: t.title ? `${t.name}: ${t.title}` : t.name })));
      if (names.includes(before)) select.value = before;
      else if (names.includes('a2a_send_message')) select.value = 'a2a_send_message';
    }
    this.#show();
  }

  get #tool() {
    return this.#status?.tools.find((t) => t.name === field('tool').value);
  }

  // show makes the fields of the chosen tool, unless they are there already.
  #show() {
    const tool = this.#tool;
    const schema = tool ? tool.name + JSON.stringify(tool.inputSchema ?? {}) : '';
    if (schema === this.#schema) return;
    this.#keep();
    this.#schema = schema;
    field('run').disabled = !tool;
    field('tool-about').textContent = firstSentence(tool?.description ?? '');
    field('fields').replaceChildren();
    if (!tool) return;
    const inputs = inputsOf(tool.inputSchema ?? {});
    field('fields').append(...inputs.filter((i) => i.first).map((i) => this.#field(i)));
    const rest = inputs.filter((i) => !i.first);
    if (rest.length > 0) {
      const fold = element('details', {}, element('summary', { textContent: `More arguments: ${rest.map((i) => i.name).join(', ')}` }));
      fold.append(...rest.map((i) => this.#field(i)));
      fold.open = rest.some((i) => this.#kept[i.name]);
      field('fields').append(fold);
    }
  }

  // keep notes what is typed, for the next tool that has such a field.
  #keep() {
    for (const control of field('fields').querySelectorAll('[name]')) {
      if (control.name) this.#kept[control.name] = control.value;
    }
  }

  #field(input) {
    const id = 'argument-' + input.id;
    const control = controlOf(input);
    control.id = id;
    control.name = input.name;
    control.setAttribute('aria-describedby', `${id}-about ${id}-trouble`);
    if (input.required) control.setAttribute('aria-required', 'true');
    const kept = this.#kept[input.name];
    if (kept && (control.tagName !== 'SELECT' || [...control.options].some((o) => o.value === kept))) control.value = kept;
    return element('div', { className: 'field' },
      element('label', { htmlFor: id }, input.name, element('span', { className: 'muted', textContent: input.hint })),
      control,
      element('p', { className: 'sub', id: id + '-about', textContent: input.about }),
      element('p', { className: 'trouble', id: id + '-trouble' }));
  }

  // arguments reads the fields; null when one of them is wrong, which is then
  // said beside it.
  #arguments() {
    let args = {};
    let wrong = null;
    for (const input of inputsOf(this.#tool.inputSchema ?? {})) {
      const control = field('argument-' + input.id);
      const { value, trouble } = read(input, control.value);
      field(control.id + '-trouble').textContent = trouble ?? '';
      if (trouble) {
        control.setAttribute('aria-invalid', 'true');
        wrong ??= control;
        continue;
      }
      control.removeAttribute('aria-invalid');
      if (input.whole) args = value ?? {};
      else if (value !== undefined) args[input.name] = value;
    }
    if (!wrong) return args;
    const fold = wrong.closest('details');
    if (fold) fold.open = true;
    wrong.focus();
    return null;
  }

  async #run() {
    const tool = this.#tool;
    if (!tool || this.#abort) return;
    const args = this.#arguments();
    if (!args) return;
    this.#begin(tool);
    const started = performance.now();
    const took = () => durationWords(performance.now() - started);
    try {
      const result = await call({
        endpoint: this.#session.endpoint,
        headers: { ...this.#session.headers(), ...mirrored(tool.inputSchema, args) },
        version: this.#status.gateway,
        tool: tool.name,
        args,
        signal: this.#abort.signal,
        progress: (message) => field('progress').append(element('li', { textContent: message })),
      });
      this.#end(result.isError ? 'bad' : 'good', result.isError ? `The tool reported an error after ${took()}` : `Answered after ${took()}`);
      field('answer').append(...answer(result));
      this.#offer(result);
    } catch (e) {
      if (e.name === 'AbortError') this.#end('wait', `Stopped after ${took()}`);
      else this.#end('bad', `No answer after ${took()}: ${e.message}`);
      if (e instanceof Fault && e.data) field('answer').append(folded('The error', e.data));
    } finally {
      this.#abort = null;
      this.#session.refresh();
    }
  }

  #begin(tool) {
    this.#abort = new AbortController();
    this.#handles = null;
    for (const id of ['progress', 'answer']) field(id).replaceChildren();
    field('outcome').hidden = false;
    field('stop').hidden = false;
    field('continue').hidden = true;
    field('run').setAttribute('aria-disabled', 'true');
    this.#say('wait', `Calling ${tool.name}…`);
  }

  #end(tone, words) {
    // Whoever has the focus on a button that goes away gets the next one.
    const focused = document.activeElement === field('stop');
    field('stop').hidden = true;
    field('run').removeAttribute('aria-disabled');
    if (focused) field('run').focus();
    this.#say(tone, words);
  }

  #say(tone, words) {
    field('outcome-state').replaceChildren(element('span', { className: 'state ' + tone, textContent: words }));
  }

  // offer lets a conversation go on where the answer names handles.
  #offer(result) {
    const envelope = result._meta?.['a2agate/envelope'] ?? result.structuredContent ?? {};
    const open = ['input_required', 'working', 'auth_required'].includes(envelope.status);
    const handles = { agent: envelope.agent, contextHandle: envelope.contextHandle, taskHandle: open ? envelope.taskHandle : undefined };
    const names = inputsOf(this.#tool?.inputSchema ?? {}).map((i) => i.name);
    if (!['contextHandle', 'taskHandle'].some((n) => handles[n] && names.includes(n))) return;
    this.#handles = handles;
    field('continue').hidden = false;
  }

  #continue() {
    for (const control of field('fields').querySelectorAll('[name]')) {
      if (!['contextHandle', 'taskHandle'].includes(control.name)) continue;
      control.value = this.#handles?.[control.name] ?? '';
      const fold = control.closest('details');
      if (fold && control.value) fold.open = true;
    }
    const text = field('argument-text') ?? field('run');
    if (text.tagName === 'TEXTAREA') text.value = '';
    text.focus();
    field('continue').hidden = true;
  }
}

const durationWords = (millis) => (millis < 1000 ? `${Math.round(millis)} ms` : `${(millis / 1000).toFixed(1)} s`);

// inputsOf are the fields for a schema: one for each property, or one for the
// whole where it names none. first says which are shown at once.
function inputsOf(schema) {
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) {
    return [{ name: 'arguments', id: '0', kind: 'json', whole: true, first: true, hint: ' JSON object', about: '', schema: {} }];
  }
  const required = new Set(schema.required ?? []);
  return properties.map(([name, s], i) => {
    const property = typeof s === 'object' && s ? s : {};
    const kind = kindOf(property);
    return {
      name,
      // Names are an agent's words; text is the one that code looks for.
      id: name === 'text' ? 'text' : String(i),
      kind,
      schema: property,
      required: required.has(name),
      first: required.has(name) || i < 2,
      hint: (kind === 'json' ? ' JSON' : '') + (required.has(name) ? ' required' : ''),
      about: typeof property.description === 'string' ? property.description : '',
    };
  });
}

// firstSentence is enough here: the whole description stands under Tools.
function firstSentence(text) {
  return text.match(/^.*?[.!?](?=\s|$)/s)?.[0] ?? text;
}

function kindOf(property) {
  if (Array.isArray(property.enum) && property.enum.every((v) => typeof v === 'string')) return 'choice';
  if (['string', 'integer', 'number', 'boolean'].includes(property.type)) return property.type;
  return 'json';
}

function controlOf(input) {
  const { kind, schema } = input;
  if (kind === 'choice' || kind === 'boolean') {
    const values = kind === 'choice' ? schema.enum : ['true', 'false'];
    const select = element('select', {}, element('option', { value: '', textContent: 'not set' }));
    select.append(...values.map((v) => element('option', { value: v, textContent: v })));
    if (kind === 'choice' && typeof schema.default === 'string') select.value = schema.default;
    else if (input.required || (kind === 'choice' && values.length === 1)) select.value = values[0];
    return select;
  }
  if (kind === 'json') return element('textarea', { rows: input.whole ? 5 : 2, className: 'code', spellcheck: false });
  if (kind === 'string') {
    if (/text|message|prompt|body|content$/i.test(input.name)) return element('textarea', { rows: 3 });
    return element('input', { type: 'text', spellcheck: false });
  }
  return element('input', { type: 'text', inputMode: kind === 'integer' ? 'numeric' : 'decimal' });
}

// read makes of what is typed the value of an argument; undefined for none.
function read(input, text) {
  if (text === '') return input.required ? { trouble: `${input.name} is needed` } : {};
  switch (input.kind) {
    case 'boolean':
      return { value: text === 'true' };
    case 'integer':
    case 'number': {
      const value = Number(text);
      const fits = input.kind === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value);
      if (text.trim() === '' || !fits) return { trouble: input.kind === 'integer' ? 'this must be a whole number' : 'this must be a number' };
      return { value };
    }
    case 'json':
      try {
        const value = JSON.parse(text);
        if (input.whole && (typeof value !== 'object' || value === null || Array.isArray(value))) return { trouble: 'this must be a JSON object' };
        return { value };
      } catch (e) {
        return { trouble: `this is not JSON: ${e.message}` };
      }
  }
  return { value: text };
}

// mirrored are the headers that a schema asks for with x-mcp-header.
function mirrored(schema, args) {
  const headers = {};
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const header = property?.['x-mcp-header'];
    const value = args[name];
    if (typeof header === 'string' && value !== undefined && value !== null) headers['Mcp-Param-' + header] = encoded(value);
  }
  return headers;
}

// answer shows the content of a result. All of it is somebody else's words.
function answer(result) {
  const shown = (result.content ?? []).map(block);
  if (result.resultType === 'input_required') shown.push(folded('The questions', result.inputRequests ?? {}));
  const structured = result.structuredContent ?? result._meta?.['a2agate/envelope'];
  if (structured !== undefined) shown.push(folded('Structured content', structured));
  return shown;
}

function folded(title, value) {
  return element('details', {}, element('summary', { textContent: title }), pre(JSON.stringify(value, null, 2)));
}

function pre(text) {
  return element('pre', { textContent: text, tabIndex: 0 });
}

function block(content) {
  switch (content.type) {
    case 'text':
      return pre(content.text ?? '');
    case 'image':
      return image(content);
    case 'audio':
      return element('p', { className: 'muted', textContent: described(content.mimeType, content.data) });
    case 'resource_link':
      return element('p', {}, link(content.uri, content.title || content.name));
    case 'resource':
      if (typeof content.resource?.text === 'string') return pre(content.resource.text);
      return element('p', { className: 'muted', textContent: described(content.resource?.mimeType, content.resource?.blob) });
  }
  return pre(JSON.stringify(content, null, 2));
}

// link is a link where the address is http(s), else text.
function link(address, title) {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol)) return `${title ?? ''} ${address}`;
  return element('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow', textContent: title ? `${title} (${address})` : address });
}

function described(kind, base64) {
  return `${kind || 'binary content'}, ${Math.ceil(((base64 ?? '').length * 3) / 4 / 1024)} KiB`;
}

// image draws a picture on a canvas: nothing is loaded from an address, and
// what the browser cannot decode stays a line of text.
function image(content) {
  const holder = element('p', { className: 'muted', textContent: described(content.mimeType, content.data) });
  draw(holder, content).catch(() => {});
  return holder;
}

async function draw(holder, content) {
  const bytes = Uint8Array.from(atob(content.data ?? ''), (c) => c.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: content.mimeType }));
  const scale = Math.min(1, 640 / bitmap.width, 640 / bitmap.height);
  const canvas = element('canvas', { width: Math.max(1, bitmap.width * scale), height: Math.max(1, bitmap.height * scale) });
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', `an image of the agent, ${holder.textContent}`);
  canvas.getContext('2d').drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  holder.append(element('br'), canvas);
}
