// Keeps the status page up to date: asks api/status every few seconds, and
// where something changed, takes the changed parts of the page as the gateway
// renders it. What is folded open, typed or focused stays as it is.

import { TryIt } from './tryit.js';

const every = Number(document.body.dataset.every) || 3000; // ms between two looks
const patience = 10000; // ms that one look may take
const slow = 10000; // ms between two looks while the gateway does not answer
const tokenKey = 'a2agate.token';

let etag = document.body.dataset.etag ?? '';
let states = statesOf(document);
let timer = 0;
let looking = null;
let tryIt = null;

// session is what the form needs of this page.
const session = {
  endpoint: new URL('mcp', document.baseURI).href,
  headers() {
    const token = sessionStorage.getItem(tokenKey);
    return token ? { Authorization: 'Bearer ' + token } : {};
  },
  refresh: () => look(),
};

// Refused is an answer of the gateway that is not the one asked for.
class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function get(path, accept, known) {
  const headers = { ...session.headers(), Accept: accept };
  if (known) headers['If-None-Match'] = known;
  const response = await fetch(path, { headers, cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(patience) });
  if (response.status === 304 || response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Refused(response.status, body.error?.message ?? `the gateway answered ${response.status}`);
}

// look asks once for news. There is one look at a time.
function look() {
  looking ??= lookOnce().finally(() => {
    looking = null;
  });
  return looking;
}

async function lookOnce() {
  clearTimeout(timer);
  let next = every;
  try {
    const response = await get('api/status', 'application/json', tryIt ? etag : '');
    if (response.status !== 304) await take(await response.json(), response.headers.get('ETag'));
    connected('Live', '');
  } catch (e) {
    const said = e instanceof Refused ? e.message : 'the gateway does not answer';
    if (e.status === 401 || document.getElementById('signin')) {
      signIn(said);
      return;
    }
    next = slow;
    connected('Not connected: ' + said, 'bad');
  }
  tell();
  if (!document.hidden) timer = setTimeout(look, next);
}

// take brings a new status onto the page.
async function take(status, tag) {
  if (tag !== etag || !document.getElementById('agents-live')) {
    const response = await get('.', 'text/html', '');
    show(new DOMParser().parseFromString(await response.text(), 'text/html'));
    tag = response.headers.get('ETag');
  }
  etag = tag;
  tryIt ??= new TryIt(session);
  tryIt.update(status);
}

function show(next) {
  if (!document.getElementById('agents-live')) {
    document.body.replaceChildren(...next.body.childNodes);
    document.getElementById('main').focus();
  }
  for (const part of document.querySelectorAll('[data-live]')) {
    const fresh = next.getElementById(part.id);
    if (fresh) morph(part, fresh);
  }
  document.title = next.title;
  announce(next);
  ready();
}

// morph makes one node like another with as little change as can be.
function morph(node, like) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== like.data) node.data = like.data;
    return;
  }
  for (const { name } of [...node.attributes]) {
    if (!like.hasAttribute(name) && !ours(node, name)) node.removeAttribute(name);
  }
  for (const { name, value } of like.attributes) {
    if (!ours(node, name) && node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  if (node.tagName === 'TIME') return; // its words are made here
  let at = node.firstChild;
  for (const child of [...like.childNodes]) {
    const twin = child.id ? [...node.children].find((c) => c.id === child.id) : alike(at, child) ? at : null;
    if (!twin) {
      node.insertBefore(child, at);
      continue;
    }
    if (twin === at) at = at.nextSibling;
    else node.insertBefore(twin, at);
    morph(twin, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

const alike = (a, b) => a && !a.id && a.nodeType === b.nodeType && a.nodeName === b.nodeName;

// ours are the attributes that a person or this script has set.
function ours(node, name) {
  return (node.tagName === 'DETAILS' && name === 'open') || (node.dataset.copy && name === 'hidden') || (node.tagName === 'TIME' && name === 'title');
}

function statesOf(page) {
  return new Map([...page.querySelectorAll('.agent')].map((a) => [a.id.slice('agent-'.length), { state: a.querySelector('.state').textContent, reason: a.dataset.reason }]));
}

// announce says to a screen reader which agents changed.
function announce() {
  const now = statesOf(document);
  const news = [];
  for (const [alias, { state, reason }] of now) {
    if (states.has(alias) && states.get(alias).state !== state) news.push(`${alias} is ${state}${reason ? ': ' + reason : ''}`);
    else if (!states.has(alias) && states.size > 0) news.push(`${alias} is new, ${state}`);
  }
  for (const alias of states.keys()) if (!now.has(alias)) news.push(`${alias} is gone`);
  states = now;
  if (news.length > 0) document.getElementById('announce').textContent = news.join('. ');
}

function connected(words, tone) {
  const place = document.getElementById('connection');
  if (!place) return;
  if (place.textContent !== words) {
    place.textContent = words;
    if (tone) document.getElementById('announce').textContent = words;
  }
  place.className = tone ? 'state ' + tone : 'state good';
}

// tell writes the times in words that a person reads at a glance.
function tell() {
  for (const t of document.querySelectorAll('time[datetime]')) {
    const at = new Date(t.dateTime);
    const words = ago((Date.now() - at) / 1000) || at.toLocaleString();
    if (t.textContent !== words) t.textContent = words;
    t.title = at.toLocaleString();
  }
}

function ago(seconds) {
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds / 5) * 5} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return '';
}

// ready gives the page what needs a script.
function ready() {
  for (const button of document.querySelectorAll('[data-copy]')) button.hidden = false;
  const out = document.getElementById('signout');
  if (out) out.hidden = !sessionStorage.getItem(tokenKey);
  tell();
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const copied = await navigator.clipboard?.writeText(source.textContent).then(() => true, () => false);
  if (!copied) {
    // Without a secure origin there is no clipboard: then the text is selected.
    getSelection().selectAllChildren(source);
  }
  const said = copied || document.execCommand('copy') ? 'Copied' : 'Selected: copy it with the keyboard';
  button.firstChild.data = said;
  document.getElementById('announce').textContent = said;
  setTimeout(() => {
    button.firstChild.data = 'Copy';
  }, 2000);
}

// signIn asks for a token; without its form the page of the gateway that has
// it is loaded.
function signIn(trouble) {
  const tried = sessionStorage.getItem(tokenKey);
  sessionStorage.removeItem(tokenKey);
  const form = document.getElementById('signin');
  if (!form) {
    location.reload();
    return;
  }
  form.hidden = false;
  document.getElementById('token-trouble').textContent = tried ? trouble : '';
  document.getElementById('token').focus();
}

document.addEventListener('submit', (e) => {
  if (e.target.id !== 'signin') return;
  e.preventDefault();
  const token = document.getElementById('token').value.trim();
  if (!token) return;
  sessionStorage.setItem(tokenKey, token);
  look();
});

document.addEventListener('click', (e) => {
  const button = e.target.closest('button');
  if (button?.dataset.copy) copy(button);
  if (button?.id === 'signout') {
    sessionStorage.removeItem(tokenKey);
    location.reload();
  }
});

document.addEventListener('visibilitychange', () => {
  if (document.hidden) clearTimeout(timer);
  else look();
});

if (document.getElementById('signin') && !sessionStorage.getItem(tokenKey)) {
  signIn('');
} else {
  ready();
  look();
}
