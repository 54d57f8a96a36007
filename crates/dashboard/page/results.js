// @ts-check
// What a search has found, as a list; and how long a rollout will take, from how it went.

import { h, keyed, optional, text } from './dom.js';
import { mark } from './marks.js';
import { counted, duration, number, short, WORDS } from './words.js';

/** More than anybody reads. */
const MOST = 50;

/** The clusters that match a search, in the order of the squares. */
export class Results {
  /**
   * @param {import('./state').Rollout} rollout
   * @param {(cluster: string) => void} open
   */
  constructor(rollout, open) {
    this.rollout = rollout;
    this.open = open;
    this.list = h('ol.result-list', { 'aria-label': 'Clusters found' });
    this.more = h('p.fine', { hidden: true }, '');
    this.node = h('div.results.card', { hidden: true }, this.list, this.more);
  }

  /** @param {number[] | null} rows null if there is no search */
  update(rows) {
    this.node.hidden = !rows?.length;
    const shown = (rows ?? []).slice(0, MOST);
    keyed(this.list, shown, (row) => this.rollout.clusters.name[row], () => this.line());
    optional(this.more, rows && rows.length > MOST ? `and ${counted(rows.length - MOST, 'more cluster')}` : '');
  }

  line() {
    const state = h('span.result-state', {});
    const name = h('button.link', { type: 'button', click: () => this.open(name.textContent) }, '');
    const place = h('span.soft', {}, '');
    const message = h('span.result-message', {}, '');
    let drawn;
    return {
      node: h('li', {}, state, name, place, message),
      update: (/** @type {number} */ row) => {
        const { clusters, addon } = this.rollout;
        const kind = clusters.kind[row];
        if (drawn !== kind) state.replaceChildren(mark(kind));
        drawn = kind;
        text(name, clusters.name[row]);
        const placement = addon.placements[clusters.placement[row]]?.name;
        text(place, [placement && short(placement), this.rollout.revision(row)].filter(Boolean).join(' · '));
        const why = this.rollout.message(row);
        text(message, why && why !== WORDS[kind] ? `${WORDS[kind]}: ${why}` : WORDS[kind]);
      },
    };
  }
}

/** How far back the pace is measured, and the least that says something about it, in seconds. */
const WINDOW = 900;
const LEAST = 10;

/**
 * How long the rest will take at the pace of the last quarter of an hour, as text; empty if nothing settled since.
 * @param {import('./messages').Point[]} points
 * @param {import('./messages').Counts} counts
 * @param {number} now in milliseconds
 */
export function timeLeft(points, { settled, inFlight, waiting }, now) {
  const left = inFlight + waiting;
  const until = now / 1000;
  let [from, base, before] = [NaN, 0, 0];
  for (const [at, count] of points) {
    // A new revision begins: what had settled before says nothing about its pace.
    if (Number.isNaN(from) || count < before || at <= until - WINDOW) [from, base] = [Math.max(at, until - WINDOW), count];
    before = count;
  }
  const [span, gained] = [until - from, settled - base];
  if (!left || !(span >= LEAST) || gained < 2) return '';
  return `about ${duration((left * span * 1000) / gained)} left at this pace (${number(gained)} settled in ${duration(span * 1000)})`;
}
