// @ts-check
// The placements of an add-on in the order in which a change reaches them, each with its budget, its gate and its squares.

import { attribute, h, keyed, optional, svg, text } from './dom.js';
import { bar, chip } from './sections.js';
import { counted, number, short, withoutCount } from './words.js';

/** @typedef {import('./messages').Placement} Placement */

/** The clusters that no placement of the add-on selects. */
export const NOWHERE = -1;

export class Placements {
  /** `act` is null if the dashboard is read-only. */
  constructor(act) {
    this.act = act;
    this.node = h('div.placements', {});
    /** Where the squares of each placement go, by its index; rebuilt with the cards. */
    this.places = new Map();
  }

  /**
   * @param {Placement[]} placements
   * @param {import('./state').Clusters} clusters
   */
  update(placements, clusters) {
    const counts = new Map();
    for (const placement of clusters.placement) counts.set(placement, (counts.get(placement) ?? 0) + 1);
    const order = placements.map((_, index) => index).sort((a, b) => placements[a].position - placements[b].position);
    const cards = order.map((index, at) => ({ index, at, placement: placements[index], count: counts.get(index) ?? 0 }));
    if (counts.has(NOWHERE)) cards.push({ index: NOWHERE, at: cards.length, placement: null, count: counts.get(NOWHERE) });
    const views = keyed(this.node, cards, (one) => (one.placement ? `of ${one.placement.name}` : 'nowhere'), (one) => (one.placement ? this.card(one) : nowhere()));
    this.places.clear();
    [...views.values()].forEach((view, at) => this.places.set(cards[at].index, view.place));
    attribute(this.node, 'data-count', cards.length);
  }

  /** @param {{placement: Placement}} first */
  card(first) {
    const state = chip();
    const progress = bar();
    const step = h('span.step', { 'aria-hidden': 'true' }, '');
    const name = h('h3', {}, '');
    const space = h('span.soft', {}, '');
    const held = h('span.tag.warning', { hidden: true }, 'paused');
    const message = h('p.message', {}, '');
    const strategy = h('span', {}, '');
    const figures = h('span.numbers', {}, '');
    const revisions = h('p.fine.wants', {}, '');
    const budget = meter();
    const gate = gateView();
    const place = h('div.place', {});
    const now = { paused: first.placement.paused, name: first.placement.name };
    const pause = h('button.small', { type: 'button', hidden: !this.act, click: () => this.act(now.paused ? 'resume' : 'pause', { placement: now.name }) }, '');
    const node = h(
      'section.card.placement',
      {},
      h('div.placement-head', {}, step, h('div.placement-name', {}, name, space, held), state.node),
      message,
      gate.node,
      h('div.placement-bar', {}, progress.node, figures),
      h('div.placement-foot', {}, h('div.strategy.soft', {}, strategy, budget.node), pause),
      revisions,
      place,
    );
    return {
      node,
      place,
      update: (/** @type {{at: number, placement: Placement, count: number}} */ { at, placement, count }) => {
        Object.assign(now, { paused: placement.paused, name: placement.name });
        text(step, String(at + 1));
        text(name, short(placement.name));
        optional(space, placement.name.includes('/') ? placement.name.slice(0, placement.name.indexOf('/')) : '');
        state.update(placement.state, placement.paused);
        attribute(held, 'hidden', !placement.paused);
        // A closed gate shows the same, with its reason.
        const shut = placement.gate && !placement.gate.open;
        optional(message, shut && placement.message.includes(placement.gate.message) ? '' : withoutCount(placement.message));
        gate.update(placement.gate);
        progress.update({ settled: placement.done, inFlight: placement.inFlight, failed: placement.failed, waiting: placement.waiting, leaving: placement.leaving });
        text(figures, `${number(placement.done)} of ${number(placement.governed)}`);
        text(strategy, placement.strategy);
        budget.update(placement);
        optional(revisions, wants(placement));
        text(pause, placement.paused ? 'Resume…' : 'Pause…');
        attribute(pause, 'aria-label', `${placement.paused ? 'Resume' : 'Pause'} ${placement.name}`);
        // A placement of 10,000 clusters is wider than one of 100, but not a hundred times as wide.
        const grow = Math.max(1, count ** 0.8).toFixed(1);
        if (node.style.flexGrow !== grow) node.style.flexGrow = grow;
        attribute(node, 'data-placement', placement.name);
        attribute(node, 'data-state', placement.state);
      },
    };
  }
}

/**
 * Where it is going, if it is going anywhere.
 * @param {Placement} placement
 */
function wants({ wants: wanted, target, knownGood }) {
  const parts = [];
  if (wanted) parts.push(`wants ${wanted}`);
  if (target && target !== wanted) parts.push(`rolling out ${target}`);
  if (knownGood && knownGood !== wanted) parts.push(`known good ${knownGood}`);
  return parts.join(' · ');
}

function nowhere() {
  const place = h('div.place', {});
  const message = h('p.message', {}, '');
  const node = h('section.card.placement.nowhere', {}, h('div.placement-head', {}, h('div.placement-name', {}, h('h3', {}, 'No placement'))), message, place);
  return {
    node,
    place,
    update: ({ count }) => text(message, `${counted(count, 'cluster')} with an instance that no placement of the add-on selects.`),
  };
}

/** The used part of the budget: pips if there are few slots, otherwise a line. */
function meter() {
  const used = h('span.used', {});
  const words = h('span.numbers', {}, '');
  const node = h('span.budget', {}, h('span.meter', { 'aria-hidden': 'true' }, used), words);
  return {
    node,
    update: (/** @type {Placement} */ { budget, inFlight, slotsUsed }) => {
      text(words, budget === null ? `${number(inFlight)} in flight, no limit` : `${number(slotsUsed)} of ${number(budget)} slots in use`);
      attribute(node, 'data-full', budget !== null && slotsUsed >= budget);
      const width = `${budget ? Math.min(100, (100 * slotsUsed) / budget) : 0}%`;
      if (used.style.width !== width) used.style.width = width;
      attribute(node.firstChild, 'hidden', budget === null);
    },
  };
}

/** The canary gate of the placement. */
function gateView() {
  const bow = svg('path', { d: '', fill: 'none', stroke: 'currentColor', 'stroke-width': 1.6 });
  const lock = svg('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true' }, svg('rect', { x: 3, y: 7, width: 10, height: 7, rx: 1.5, fill: 'currentColor' }), bow);
  const title = h('strong', {}, '');
  const message = h('span', {}, '');
  const node = h('p.gate', { hidden: true }, lock, h('span', {}, title, ' ', message));
  return {
    node,
    update: (/** @type {import('./messages').Gate | null} */ gate) => {
      attribute(node, 'hidden', !gate);
      if (!gate) return;
      attribute(node, 'data-open', gate.open ? 'yes' : 'no');
      attribute(bow, 'd', gate.open ? 'M5 7V5a3 3 0 0 1 5.800-1' : 'M5 7V5a3 3 0 0 1 6 0v2');
      const canaries = gate.canaries.map(short).join(' and ');
      text(title, gate.open ? `Gate open: ${canaries} ${gate.canaries.length === 1 ? 'has' : 'have'} passed.` : `Gate closed: waiting for ${canaries}.`);
      // If the gate is open, the title is enough.
      optional(message, gate.open ? '' : gate.message);
    },
  };
}
