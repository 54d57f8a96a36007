// @ts-check
// The frame of the page: the token, which view is shown, the connection, colours.

import { AddOnView } from './addon.js';
import { get, Refused, takeToken, token } from './api.js';
import { attribute, h, optional, text } from './dom.js';
import { ListView } from './list.js';
import { Stream } from './stream.js';
import { atHub, clock, freeze, hubSays, moment } from './words.js';

const $ = (id) => document.getElementById(id);
const page = {
  info: null,
  view: null,
  stream: null,
  heard: null,
  /** The connection to the dashboard's server. @type {{state: string, since?: number, cause?: string}} */
  link: { state: 'connecting' },
  /** The outage of the hub. @type {import('./messages').HubOutage | null} */
  outage: null,
  stale: false,
};

/** `#/addon/NAME` and `#/addon/NAME/cluster/CLUSTER`; anything else is the list. */
function route() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').map(decoded);
  if (parts[0] !== 'addon' || !parts[1]) return { addon: null, cluster: null };
  return { addon: parts[1], cluster: parts[2] === 'cluster' && parts[3] ? parts[3] : null };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Shows the view of the current address. */
function show() {
  takeToken();
  if (!token.get()) return askForToken('');
  const { addon, cluster } = route();
  if (page.view && page.view.addon === addon) return page.view.select?.(cluster);
  leave();
  const main = $('main');
  main.replaceChildren();
  page.view = addon === null ? new ListView(main) : new AddOnView(main, $('panel'), addon, page.info);
  scrollTo(0, 0);
  // The focused element may have been removed with the previous view.
  main.focus({ preventScroll: true });
  follow(addon === null ? '/api/stream' : `/api/stream?addon=${encodeURIComponent(addon)}`);
  page.view.select?.(cluster);
}

function leave() {
  page.stream?.stop();
  page.view?.close?.();
  page.stream = null;
  page.view = null;
}

function follow(path) {
  connection('connecting');
  page.stream = new Stream(path, {
    event: (name, data) => {
      if (name === 'hub') return hub(data.unreachable);
      if (data.now) hubSays(data.now);
      page.heard = Date.now();
      page.view.event(name, data);
      tellConnection();
    },
    state: connection,
    refused: (message) => {
      token.forget();
      askForToken(message);
    },
  });
}

/**
 * The connection to the dashboard's server.
 * @param {string} state connecting, live or reconnecting
 * @param {number} [since]
 * @param {string} [cause]
 */
function connection(state, since, cause) {
  // A new stream reports an outage of the hub again.
  if (state !== page.link.state) page.outage = null;
  page.link = { state, since, cause };
  tellConnection();
  if (state === 'reconnecting' && cause) page.view?.trouble?.(cause);
}

/**
 * The server's connection to the hub.
 * @param {import('./messages').HubOutage | null} unreachable
 */
function hub(unreachable) {
  page.outage = unreachable;
  tellConnection();
}

/** Says how fresh the page is: live, or since when it is not and why. */
function tellConnection() {
  const { outage, link } = page;
  const lost = link.state === 'reconnecting';
  const node = $('connection');
  attribute(node, 'data-state', outage ? 'unreachable' : link.state);
  text($('connection-text'), outage ? 'hub unreachable' : lost ? `reconnecting since ${moment(link.since)}` : link.state);
  optional($('last-change'), link.state === 'live' && !outage && page.heard ? `last change ${clock(page.heard)}` : '');
  const cause = outage ? outage.cause : link.cause;
  attribute(node, 'title', cause ?? null);
  optional($('trouble'), outage ? hubTrouble(outage) : lost ? linkTrouble(link) : '');
  const stale = Boolean(outage) || lost;
  document.body.classList.toggle('stale', stale);
  freeze(outage ? Date.parse(outage.since) : lost && page.view ? atHub(link.since) : null);
  if (stale !== page.stale) page.view?.tick?.();
  page.stale = stale;
}

function hubTrouble({ since, cause }) {
  return `Hub unreachable since ${moment(since)}: ${cause}. This page shows the state of that time and continues by itself.`;
}

/** @param {{since?: number, cause?: string}} link */
function linkTrouble({ since, cause }) {
  return `No connection to the dashboard since ${moment(since)}${cause ? `: ${cause}` : ''}. This page continues by itself.`;
}

/** Asks for a token if there is none or it was refused. */
function askForToken(message) {
  leave();
  page.info = null;
  page.outage = null;
  page.link = { state: 'refused' };
  freeze(null);
  optional($('trouble'), '');
  document.body.classList.remove('stale');
  attribute($('connection'), 'data-state', 'refused');
  text($('connection-text'), 'not signed in');
  optional($('last-change'), '');
  const field = h('input', { id: 'token', type: 'password', name: 'token', autocomplete: 'off', spellcheck: 'false', required: true });
  const submit = (event) => {
    event.preventDefault();
    token.keep(field.value.trim());
    start();
  };
  const form = h(
    'form.signin.card',
    { submit },
    h('h1', {}, 'Sign in'),
    h(
      'p.soft',
      {},
      'On your own machine, open the whole address that ',
      h('code', {}, 'aviary dashboard'),
      ' prints. In a cluster, use your own bearer token: the page shows what that token may see.',
    ),
    message ? h('p.error', { role: 'alert' }, message) : null,
    h('label', { for: 'token' }, 'Token'),
    field,
    h('button.primary', { type: 'submit' }, 'Open'),
    h('p.fine', {}, 'The token stays in this tab and is sent only to this server.'),
  );
  $('main').replaceChildren(form);
  document.title = 'Sign in · Aviary';
  field.focus();
}

/** Reads the server's info, then shows the view. Retries while the server is unreachable. */
async function start() {
  takeToken();
  if (!token.get()) return askForToken('');
  const since = Date.now();
  for (let pause = 500; !page.info; pause = Math.min(pause * 2, 10_000)) {
    try {
      page.info = await get('/api/info');
    } catch (error) {
      if (error instanceof Refused) {
        token.forget();
        return askForToken(error.message);
      }
      connection('reconnecting', since, error.message);
      await new Promise((done) => setTimeout(done, pause));
    }
  }
  text($('server'), page.info.server);
  optional($('mode'), page.info.writes ? '' : 'read-only');
  optional($('user'), page.info.user ?? '');
  attribute($('user'), 'title', page.info.user ? 'How the hub knows you' : null);
  attribute(document.body, 'data-version', page.info.version);
  show();
}

/** @param {EventTarget | null} target */
function isField(target) {
  return target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

const THEMES = ['auto', 'light', 'dark'];

function theme(name) {
  const chosen = THEMES.includes(name) ? name : 'auto';
  document.documentElement.dataset.theme = chosen;
  text($('theme-text'), chosen);
  attribute($('theme'), 'aria-label', `Colours: ${chosen === 'auto' ? 'as the system' : chosen}`);
  page.view?.recolour?.();
}

$('theme').addEventListener('click', () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  localStorage.setItem('aviary-theme', next);
  theme(next);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => page.view?.recolour?.());
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('main').focus();
});
addEventListener('hashchange', () => (page.info ? show() : start()));
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
  const field = /** @type {HTMLElement | null} */ (document.querySelector('main input[type=search]'));
  if (!field || document.querySelector('dialog[open]')) return;
  event.preventDefault();
  field.focus();
});
// Ages increase even without events.
setInterval(() => page.view?.tick?.(), 5000);
theme(localStorage.getItem('aviary-theme'));
start();
