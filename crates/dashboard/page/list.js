// @ts-check
// All add-ons: those that need somebody first.

import { attribute, framed, h, keyed, optional, text } from './dom.js';
import { bar, chip } from './sections.js';
import { counted, number, waited, withoutCount } from './words.js';

/** @typedef {import('./messages').Summary} Summary */

const URGENCY = { Failed: 0, Progressing: 1, LeftAlone: 2, Done: 3 };

export class ListView {
  constructor(main) {
    this.addon = null;
    /** @type {Map<string, Summary>} */
    this.addons = new Map();
    this.loaded = false;
    this.draw = framed(() => this.render());
    this.title = h('h1', {}, 'Add-ons');
    this.summary = h('p.lede', {}, '');
    this.filter = h('input.search', { type: 'search', placeholder: 'Filter by name, version or state', 'aria-label': 'Filter add-ons', input: this.draw });
    this.rows = h('ul.addons', { 'aria-label': 'Add-ons' });
    this.empty = h('p.empty', { hidden: true }, '');
    main.append(h('div.heading', {}, h('div', {}, this.title, this.summary), this.filter), this.rows, this.empty);
    document.title = 'Add-ons · Aviary';
  }

  close() {
    this.draw.cancel();
  }

  /** Shows an error while there is nothing else to show. */
  trouble(cause) {
    if (!this.loaded) optional(this.empty, cause);
  }

  tick() {
    if (this.loaded) this.draw();
  }

  /**
   * @param {string} name
   * @param {any} data a `ListMessage` or a `ListDelta`, by its name
   */
  event(name, data) {
    if (name === 'addons') {
      this.addons = new Map(data.addons.map((addon) => [addon.name, addon]));
      this.loaded = true;
    } else if (name === 'addons-delta') {
      for (const addon of data.changed ?? []) this.addons.set(addon.name, addon);
      for (const gone of data.gone ?? []) this.addons.delete(gone);
    }
    this.draw();
  }

  render() {
    const all = [...this.addons.values()];
    all.sort((a, b) => (URGENCY[a.state] ?? 1) - (URGENCY[b.state] ?? 1) || a.name.localeCompare(b.name));
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = all.filter((addon) => matches(addon, wanted));
    keyed(this.rows, shown, (addon) => addon.name, row);
    text(this.summary, this.loaded ? told(all) : '');
    const nothing = all.length ? `No add-on matches “${this.filter.value.trim()}”.` : 'There is no ClusterManagementAddOn on this hub yet.';
    optional(this.empty, this.loaded && !shown.length ? nothing : '');
    const failed = all.filter((addon) => addon.state === 'Failed').length;
    const title = `${failed ? `✕ ${failed} failed · ` : ''}Add-ons · Aviary`;
    if (document.title !== title) document.title = title;
  }
}

/**
 * @param {Summary} addon
 * @param {string} wanted
 */
function matches(addon, wanted) {
  return [addon.name, addon.displayName, addon.version, addon.state].some((value) => value && value.toLowerCase().includes(wanted));
}

/** @param {Summary[]} all */
function told(all) {
  const of = (state) => all.filter((addon) => addon.state === state).length;
  const parts = [counted(all.length, 'add-on')];
  for (const [state, word] of [['Failed', 'failed'], ['Progressing', 'progressing'], ['LeftAlone', 'not managed'], ['Done', 'done']]) {
    if (of(state)) parts.push(`${number(of(state))} ${word}`);
  }
  return parts.join(' · ');
}

/** @param {Summary} first */
function row(first) {
  const state = chip();
  const progress = bar();
  const title = h('span.addon-title', {}, '');
  const name = h('span.addon-name', {}, '');
  const paused = h('span.tag.warning', { hidden: true }, 'paused');
  const message = h('span.addon-message', {}, '');
  const counts = h('span.addon-counts', {}, '');
  const version = h('span.value', {}, '');
  const wait = h('span.value', {}, '');
  const fact = (label, value, kind) => h(`span.fact.${kind}`, {}, h('span.label', {}, label), value);
  const link = h(
    'a.addon.card',
    { href: `#/addon/${encodeURIComponent(first.name)}` },
    h('span.addon-state', {}, state.node),
    h('span.addon-who', {}, h('span.addon-names', {}, title, name, paused), message),
    h('span.addon-bar', {}, progress.node, counts),
    fact('Version', version, 'version'),
    fact('Oldest wait', wait, 'wait'),
  );
  return {
    node: h('li', {}, link),
    update: (/** @type {Summary} */ addon) => {
      state.update(addon.state, addon.paused);
      attribute(link, 'data-state', addon.state);
      // Also if nothing waits at the moment: the next change would.
      attribute(paused, 'hidden', !addon.paused);
      text(title, addon.displayName || addon.name);
      optional(name, addon.displayName && addon.displayName !== addon.name ? addon.name : '');
      text(message, withoutCount(addon.message));
      progress.update(addon);
      text(counts, `${number(addon.settled)} of ${counted(addon.clusters, 'cluster')} in ${counted(addon.placements, 'placement')}`);
      text(version, addon.version ?? '–');
      text(wait, waited(addon.oldestWaitSince) || '–');
    },
  };
}
