// @ts-check
// Everything about one cluster, beside the page. It is read from the server when it opens, and again when its cluster changes.

import { get, Refused } from './api.js';
import { h } from './dom.js';
import { mark } from './marks.js';
import { moment, WORDS } from './words.js';

/** @typedef {import('./messages').Condition} Condition */

export class Panel {
  /** `closed` is called when the user closes it; `retry` retries a cluster, and is null if the dashboard is read-only. */
  constructor(node, addon, closed, retry) {
    this.retry = retry;
    this.node = node;
    this.addon = addon;
    this.closed = closed;
    this.cluster = null;
    this.onKey = (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || this.cluster === null || document.querySelector('dialog[open]')) return;
      event.preventDefault();
      this.closed();
    };
    document.addEventListener('keydown', this.onKey);
  }

  destroy() {
    this.hide();
    document.removeEventListener('keydown', this.onKey);
  }

  open(cluster) {
    this.cluster = cluster;
    this.title = h('h2', { id: 'panel-title', tabindex: '-1' }, cluster);
    this.body = h('div.panel-body', {}, h('p.soft', {}, 'Reading…'));
    const close = h('button.quiet', { type: 'button', 'aria-label': 'Close', click: () => this.closed() }, '✕');
    this.node.replaceChildren(h('div.panel-head', {}, this.title, close), this.body);
    this.node.hidden = false;
    document.body.classList.add('with-panel');
    this.title.focus();
    this.read();
  }

  hide() {
    this.abort?.abort();
    this.cluster = null;
    this.node.hidden = true;
    document.body.classList.remove('with-panel');
    this.node.replaceChildren();
  }

  /** Loads it again; of several concurrent loads the last one wins. */
  async read() {
    const { cluster } = this;
    if (cluster === null) return;
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    try {
      const detail = await get(`/api/addons/${encodeURIComponent(this.addon)}/clusters/${encodeURIComponent(cluster)}`, abort.signal);
      if (!abort.signal.aborted) this.show(detail);
    } catch (error) {
      if (abort.signal.aborted) return;
      const words = error instanceof Refused ? 'The token is no longer accepted.' : error.message;
      this.body.replaceChildren(h('p.error', { role: 'alert' }, words));
    }
  }

  /** @param {import('./messages').ClusterDetail} detail */
  show(detail) {
    const open = new Set([...this.body.querySelectorAll('details[open]')].map((one) => one.dataset.name));
    const facts = [
      ['Placement', detail.placement ?? 'none'],
      ['Desired', detail.desired],
      ['Assigned', detail.revision ?? 'nothing yet'],
      ['Applied', detail.applied ?? 'nothing yet'],
      ['Available', detail.available],
      ['Health', detail.health],
      ['Reason', detail.code],
    ];
    const labels = Object.entries(detail.labels ?? {});
    this.body.replaceChildren(
      h('p.panel-state', { 'data-kind': detail.kind }, mark(detail.kind), h('strong', {}, WORDS[detail.kind])),
      h('p.message', {}, detail.message),
      h('dl.facts', {}, ...facts.filter(([, value]) => value).flatMap(([label, value]) => [h('dt', {}, label), h('dd', {}, value)])),
      labels.length ? h('ul.labels', { 'aria-label': 'Labels' }, ...labels.map(([key, value]) => h('li', {}, value ? `${key}=${value}` : key))) : '',
      ...next(detail.next),
      this.retry && detail.kind === 'failed' ? h('p', {}, h('button', { type: 'button', click: () => this.retry(detail.cluster) }, 'Retry…')) : '',
      h('h3', {}, 'Health'),
      conditions(detail.conditions),
      h('h3', {}, 'Works'),
      ...works(detail.works, open),
    );
  }
}

/** @param {string} command */
function next(command) {
  if (!command) return [];
  const copy = h('button.small', { type: 'button' }, 'Copy');
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(command);
    copy.textContent = 'Copied';
  });
  return [h('p.next', {}, h('code', {}, command), copy)];
}

/** @param {Condition[]} all */
function conditions(all) {
  if (!all?.length) return h('p.empty', {}, 'None reported.');
  const line = (/** @type {Condition} */ { type, status, reason, message, lastTransitionTime }) =>
    h(
      'li',
      { 'data-worry': isWorry({ type, status }) },
      h(
        'p.condition-head',
        {},
        h('strong', {}, type),
        h('span.status', {}, status),
        h('span.soft', {}, reason),
        h('time.soft.numbers', { datetime: lastTransitionTime }, lastTransitionTime ? moment(lastTransitionTime) : ''),
      ),
      message ? h('p.message', {}, message) : null,
    );
  return h('ul.conditions', {}, ...all.map(line));
}

/** Most conditions are good when true; for these it is the opposite, and Progressing is neither. */
const WELL_WHEN_FALSE = new Set(['Degraded', 'Deleting', 'Failed']);

/** @param {Pick<Condition, 'type' | 'status'>} condition */
function isWorry({ type, status }) {
  if (type === 'Progressing') return false;
  return WELL_WHEN_FALSE.has(type) ? status === 'True' : status !== 'True';
}

/**
 * @param {import('./messages').Work[]} all
 * @param {Set<string>} open
 */
function works(all, open) {
  if (!all?.length) return [h('p.empty', {}, 'None yet.')];
  return all.map((work) =>
    h(
      'div.work',
      {},
      h('p', {}, h('code', {}, work.name)),
      conditions(work.conditions),
      ...(work.manifests ?? []).map((manifest) => {
        const where = [manifest.namespace, manifest.name].filter(Boolean).join('/');
        const name = `${work.name} ${manifest.kind} ${where}`;
        const bad = manifest.conditions?.some(isWorry);
        return h(
          'details',
          { 'data-name': name, open: open.has(name) || bad },
          h('summary', {}, h('strong', {}, manifest.kind), ' ', h('span', {}, where), ' ', h('span.soft', {}, verdict(manifest.conditions))),
          conditions(manifest.conditions),
          ...feedback(manifest.feedback),
          ...content(manifest, `${name} content`, open),
        );
      }),
    ),
  );
}

/** What the agent reports about the object. @param {[string, string][]} values */
function feedback(values) {
  if (!values?.length) return [];
  return [h('dl.facts.feedback', {}, ...values.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))];
}

/**
 * The manifest as it was rendered.
 * @param {import('./messages').Manifest} manifest
 * @param {string} name
 * @param {Set<string>} open
 */
function content(manifest, name, open) {
  if (!manifest.content) return [];
  return [h('details.content', { 'data-name': name, open: open.has(name) }, h('summary', {}, 'Rendered manifest'), h('pre', { tabindex: 0 }, manifest.content))];
}

/** @param {Condition[]} all */
function verdict(all) {
  return (all ?? []).map(({ type, status }) => (status === 'True' ? type : `${type}=${status}`)).join(', ');
}
