// @ts-check
// The parts that both views are made of, and the sections of one add-on that are lists: reasons, revisions, events, problems.

import { attribute, h, keyed, optional, text } from './dom.js';
import { mark } from './marks.js';
import { clock, counted, KINDS, moment, number, since, stateOf, WORDS } from './words.js';

/**
 * @typedef {import('./messages').Reason} Reason
 * @typedef {import('./messages').Revision} Revision
 * @typedef {import('./messages').Event} Event
 */

/** A state: its mark and its word. */
export function chip() {
  const word = h('span', {}, '');
  const node = h('span.chip', {}, word);
  let drawn;
  return {
    node,
    update: (/** @type {string} */ state, /** @type {boolean} */ paused) => {
      const shown = stateOf(state, paused && state !== 'Done');
      text(word, shown.word);
      attribute(node, 'data-kind', shown.mark);
      if (drawn === shown.mark) return;
      drawn = shown.mark;
      if (node.firstChild !== word) node.firstChild.remove();
      node.prepend(mark(shown.mark));
    },
  };
}

/** The number of clusters in each state, as one bar. */
export function bar() {
  const parts = KINDS.map((kind) => h(`span.part.fill-${kind}`, { hidden: true }));
  const node = h('span.bar', { role: 'img' }, ...parts);
  return {
    node,
    update: (/** @type {import('./messages').Counts} */ tally) => {
      const counts = KINDS.map((kind) => tally[kind]);
      counts.forEach((count, at) => {
        const grow = String(count);
        if (parts[at].style.flexGrow !== grow) parts[at].style.flexGrow = grow;
        attribute(parts[at], 'hidden', !count);
      });
      attribute(node, 'aria-label', counts.map((count, at) => `${number(count)} ${WORDS[KINDS[at]]}`).join(', '));
    },
  };
}

/** A part of the page with its heading. */
export function section(id, title, note, ...children) {
  return h(`section.card.${id}`, { 'aria-labelledby': `${id}-title` }, h('div.section-head', {}, h('h2', { id: `${id}-title` }, title), note), ...children);
}

/** Problems with the add-on's objects and held deletions, above everything else. */
export class Banners {
  constructor(acknowledge) {
    this.node = h('div.banners', {});
    this.acknowledge = acknowledge;
  }

  /** @param {import('./messages').Sections} sections */
  update({ problems, brake }) {
    /** @type {{severity: 'warning' | 'error' | 'brake', message: string, title: string}[]} */
    const all = problems.map(({ severity, message }) => ({ severity, message, title: severity === 'error' ? 'Problem' : 'Warning' }));
    if (brake) {
      const title = `The brake holds ${counted(brake.held, 'deletion')}`;
      all.unshift({ severity: 'brake', message: brake.message, title });
    }
    keyed(this.node, all, (one) => (one.severity === 'brake' ? 'brake' : `${one.severity} ${one.message}`), (one) => this.banner(one));
  }

  banner({ severity }) {
    const title = h('strong', {}, '');
    const message = h('p', {}, '');
    const node = h('div.banner', { 'data-severity': severity, role: severity === 'warning' ? 'status' : 'alert' }, h('div', {}, title, message));
    if (severity === 'brake' && this.acknowledge) {
      node.append(h('button', { type: 'button', click: this.acknowledge }, 'Approve…'));
    }
    return {
      node,
      update: (one) => {
        text(title, one.title);
        text(message, one.message);
      },
    };
  }
}

/** Why clusters are not settled, most urgent first. */
export class Reasons {
  constructor(open) {
    this.list = h('ul.reason-list', {});
    this.empty = h('p.empty', {}, 'Nothing is waiting: every cluster is up to date.');
    this.open = open;
    this.node = section('why', 'Why is it waiting', null, this.list, this.empty);
  }

  /** @param {Reason[]} reasons */
  update(reasons) {
    attribute(this.empty, 'hidden', reasons.length > 0);
    keyed(this.list, reasons, (reason) => `${reason.kind} ${reason.code}`, (reason) => this.reason(reason));
  }

  /** @param {Reason} first */
  reason({ kind }) {
    const count = h('span.count', {}, '');
    const message = h('p.message', {}, '');
    const code = h('span.code', {}, '');
    const examples = h('span.examples', {});
    const node = h('li', {}, h('span.reason-count', {}, mark(kind), count), h('div', {}, message, h('p.fine', {}, code, examples)));
    const example = (cluster) => ({
      node: h('button.link', { type: 'button', click: () => this.open(cluster) }, cluster),
      update: () => {},
    });
    return {
      node,
      update: (/** @type {Reason} */ reason) => {
        text(count, number(reason.count));
        attribute(count, 'aria-label', `${counted(reason.count, 'cluster')} ${WORDS[kind]}`);
        text(message, reason.message);
        text(code, reason.code);
        keyed(examples, reason.examples, (cluster) => cluster, example);
      },
    };
  }
}

/** The revisions of each placement and their changes. `undo` is null if the dashboard is read-only. */
export class Revisions {
  constructor(undo) {
    this.groups = h('div', {});
    this.empty = h('p.empty', {}, 'No revision has been recorded yet.');
    this.undo = undo;
    this.node = section('revisions', 'Revisions', null, this.groups, this.empty);
  }

  /** @param {Revision[]} revisions */
  update(revisions) {
    attribute(this.empty, 'hidden', revisions.length > 0);
    const groups = new Map();
    for (const revision of revisions) {
      const placement = revision.placement ?? '';
      groups.set(placement, [...(groups.get(placement) ?? []), revision]);
    }
    keyed(this.groups, [...groups], ([placement]) => placement, ([placement]) => this.group(placement));
  }

  group(placement) {
    const list = h('ol.revision-list', {});
    return {
      node: h('div.revision-group', {}, placement ? h('h3', {}, placement) : null, list),
      update: ([, revisions]) => keyed(list, revisions, ({ number: at, label }) => `${at} ${label}`, (revision) => this.revision(revision)),
    };
  }

  /** @param {Revision} first */
  revision(first) {
    const version = h('strong', {}, '');
    const label = h('code', {}, '');
    const current = h('span.tag', {}, 'current');
    const told = h('span.soft.numbers', {}, '');
    const at = h('time.soft.numbers', {});
    const changes = h('ul.changes', {});
    const count = h('summary', {}, '');
    const details = h('details', { open: first.current }, count, changes);
    const state = { revision: first };
    const undo = h('button.small', { type: 'button', hidden: true, click: () => this.undo(state.revision) }, 'Undo to this…');
    const node = h('li', {}, h('p.revision-head', {}, version, label, current, told, at), h('div.revision-foot', {}, details, undo));
    return {
      node,
      update: (/** @type {Revision} */ revision) => {
        state.revision = revision;
        const name = revision.version ?? revision.label;
        text(version, name);
        // Most revisions are named after their version.
        optional(label, revision.label === name ? '' : revision.label);
        attribute(current, 'hidden', !revision.current);
        text(told, revision.clusters ? counted(revision.clusters, 'cluster') : 'no cluster');
        optional(at, revision.at ? moment(revision.at) : '');
        attribute(at, 'datetime', revision.at);
        attribute(details, 'hidden', !revision.changes.length);
        text(count, counted(revision.changes.length, 'change'));
        keyed(changes, revision.changes, (line) => line, (line) => ({ node: h('li', {}, line), update: () => {} }));
        attribute(undo, 'hidden', !this.undo || revision.current || revision.number === null);
      },
    };
  }
}

/** The manager's events, newest first. */
export class Events {
  constructor(addon) {
    this.addon = addon;
    this.list = h('ol.event-list', {});
    this.empty = h('p.empty', {}, 'No events.');
    this.node = section('events', 'Events', null, this.list, this.empty);
  }

  /** @param {Event[]} events */
  update(events) {
    attribute(this.empty, 'hidden', events.length > 0);
    keyed(this.list, events, (event) => `${event.at} ${event.reason} ${event.about} ${event.message}`, (event) => eventLine(event, this.addon));
  }
}

/**
 * @param {Event} first
 * @param {string} addon
 */
function eventLine(first, addon) {
  // Nearly all events are about the add-on itself, so that is not repeated.
  const about = first.about === `ClusterManagementAddOn ${addon}` ? null : h('span.soft', {}, first.about);
  const age = h('time.soft.numbers', { datetime: first.at, title: moment(first.at) }, '');
  const reason = h('strong', {}, first.reason);
  const node = h(
    'li',
    { 'data-type': first.type },
    h('p.event-head', {}, first.type === 'Warning' ? h('span.tag.warning', {}, 'warning') : null, reason, about, age),
    h('p.message', {}, first.message),
  );
  return { node, update: () => text(age, since(first.at) ? `${since(first.at)} ago` : clock(first.at)) };
}
