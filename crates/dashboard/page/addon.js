// @ts-check
// One add-on: what it is at, why, and every cluster of it.

import { attribute, framed, h, optional, text } from './dom.js';
import { confirm } from './dialog.js';
import { Panel } from './panel.js';
import { Placements } from './placements.js';
import { Banners, bar, chip, Events, Reasons, Revisions } from './sections.js';
import { Legend, Squares } from './squares.js';
import { get } from './api.js';
import { Results, timeLeft } from './results.js';
import { Rollout } from './state.js';
import { Timeline } from './timeline.js';
import { counted, hubNow, KINDS, number, short, stateOf, waited, withoutCount } from './words.js';

/** A search waits this long for the next key, in milliseconds. */
const TYPING = 200;

export class AddOnView {
  /**
   * @param {HTMLElement} main
   * @param {HTMLElement} panel
   * @param {string} addon
   * @param {import('./messages').Info} info
   */
  constructor(main, panel, addon, info) {
    this.addon = addon;
    this.main = main;
    this.rollout = new Rollout();
    this.built = false;
    this.writes = info.writes;
    this.draw = framed(() => this.render());
    this.panel = new Panel(panel, addon, () => this.unselect(), info.writes ? (cluster) => confirm(addon, 'retry', { cluster, words: cluster }) : null);
    /** The last search by labels, and the clusters that it found. @type {{asked: string, names: Set<string> | null, error: string}} */
    this.labels = { asked: '', names: null, error: '' };
    this.loading = h('p.empty', { role: 'status' }, 'Reading…');
    main.append(h('p.crumbs', {}, h('a', { href: '#/' }, '← All add-ons')), this.loading);
    document.title = `${addon} · Aviary`;
  }

  close() {
    this.draw.cancel();
    clearTimeout(this.typing);
    this.panel.destroy();
    this.squares?.close();
    this.timeline?.close();
  }

  /**
   * @param {string} name
   * @param {any} data an `AddOnMessage` or an `AddOnDelta`, by its name
   */
  event(name, data) {
    if (name === 'gone') return this.gone();
    if (name === 'addon') this.rollout.replace(data);
    else if (name === 'addon-delta') this.rollout.apply(data);
    this.draw();
  }

  /** Shows an error while there is nothing else to show. */
  trouble(cause) {
    if (!this.built) text(this.loading, cause);
  }

  gone() {
    this.draw.cancel();
    this.body?.remove();
    this.panel.hide();
    this.squares?.close();
    this.timeline?.close();
    this.built = false;
    this.rollout.addon = null;
    if (!this.loading.isConnected) this.main.append(this.loading);
    text(this.loading, `There is no add-on ${this.addon} on this hub.`);
    document.title = `${this.addon} not found · Aviary`;
  }

  tick() {
    if (!this.built) return;
    this.header();
    this.events.update(this.rollout.addon.events);
    this.timeline.ask();
  }

  recolour() {
    this.squares?.recolour();
  }

  build() {
    const act = this.writes ? (action, details) => confirm(this.addon, action, details) : null;
    const { rollout } = this;
    this.title = h('h1', {}, '');
    this.names = h('p.soft.names', {}, '');
    this.state = chip();
    this.version = h('span.fact', {}, '');
    this.wait = h('span.fact', {}, '');
    this.left = h('span.fact.left', {}, '');
    this.paused = h('span.tag.warning', {}, '');
    this.message = h('p.lede', {}, '');
    this.progress = bar();
    this.total = h('span.numbers.soft', {}, '');
    this.pauseButton = h('button', { type: 'button', click: () => act(rollout.addon.paused ? 'resume' : 'pause') }, '');
    const undo = h('button', { type: 'button', click: () => act('undo') }, 'Undo…');
    this.retryButton = h('button', { type: 'button', hidden: true, click: () => act('retry', { words: 'the failed clusters' }) }, 'Retry failed…');
    const header = h(
      'header.addon-header',
      {},
      h('div.heading', {}, h('div', {}, this.title, this.names), act ? h('div.actions', {}, this.pauseButton, undo, this.retryButton) : null),
      h('div.state-line', {}, this.state.node, this.paused, this.version, this.wait, this.left),
      this.message,
      h('div.total', {}, this.progress.node, this.total),
    );
    this.banners = new Banners(act && (() => act('acknowledge', { acknowledge: rollout.addon.brake.acknowledge, words: counted(rollout.addon.brake.held, 'deletion') })));
    this.placements = new Placements(act);
    const open = (cluster) => this.go(cluster);
    this.inspector = h('p.inspector', { 'aria-live': 'polite' }, 'Point at a square to see its cluster, or use the arrow keys; Enter opens it.');
    this.squares = new Squares(rollout, { open, tell: (words) => text(this.inspector, words) });
    this.legend = new Legend(() => this.find());
    this.search = h('input.search', {
      type: 'search',
      placeholder: 'Name, reason, revision or key=value',
      'aria-label': 'Find clusters',
      input: () => this.find(),
      keydown: (event) => this.searchKey(event),
    });
    this.found = h('span.found.numbers', { role: 'status' }, '');
    this.results = new Results(rollout, open);
    this.squares.node.append(this.placements.node);
    const clusters = h(
      'section.clusters',
      { 'aria-labelledby': 'clusters-title' },
      h('div.clusters-head', {}, h('h2', { id: 'clusters-title' }, 'Clusters'), this.legend.node, h('div.find', {}, this.search, this.found)),
      this.results.node,
      this.squares.node,
      this.inspector,
    );
    this.reasons = new Reasons(open);
    this.timeline = new Timeline(rollout);
    this.revisions = new Revisions(act && ((revision) => act('undo', { toRevision: revision.number, placement: revision.placement ?? undefined, words: `to ${revision.version ?? revision.label}` })));
    this.events = new Events(this.addon);
    const left = h('div', {}, this.reasons.node, this.revisions.node);
    const right = h('div', {}, this.timeline.node, this.events.node);
    this.body = h('div.addon-view', {}, header, this.banners.node, clusters, h('div.below', {}, left, right));
    this.loading.remove();
    this.main.append(this.body);
    this.timeline.read(-1);
    this.built = true;
  }

  render() {
    const { addon } = this.rollout;
    if (!addon) return;
    const changed = this.rollout.take();
    if (!this.built) {
      this.build();
      changed.add('all');
    }
    const any = (...names) => changed.has('all') || names.some((name) => changed.has(name));
    this.header();
    if (any('problems', 'brake')) this.banners.update(addon);
    if (any('placements', 'layout')) this.placements.update(addon.placements, this.rollout.clusters);
    if (any('layout')) {
      this.squares.regroup(this.placements.places);
      this.squares.describe(addon.placements);
    }
    if (any('rows', 'layout')) {
      this.legend.update(this.rollout.clusters.kind);
      // A search result may no longer match.
      if (this.matcher()) this.find();
      else this.squares.refresh();
    }
    if (any('reasons')) this.reasons.update(addon.reasons);
    if (any('revisions')) this.revisions.update(addon.revisions);
    if (any('events')) this.events.update(addon.events);
    if (any('timeline')) this.timeline.ask();
    this.follow(any('layout'));
  }

  header() {
    const { addon } = this.rollout;
    text(this.title, addon.displayName || addon.name);
    const known = [addon.displayName && addon.displayName !== addon.name ? addon.name : null, addon.description];
    optional(this.names, known.filter(Boolean).join(' · '));
    this.state.update(addon.state, addon.paused);
    optional(this.version, addon.version ? `version ${addon.version}` : '');
    const wait = waited(addon.oldestWaitSince);
    optional(this.wait, wait ? `oldest wait ${wait}` : '');
    optional(this.left, addon.state === 'Progressing' && !addon.paused ? timeLeft(this.rollout.timeline, addon, hubNow()) : '');
    attribute(this.retryButton, 'hidden', !addon.failed);
    const held = addon.placements.filter((placement) => placement.paused).map((placement) => short(placement.name));
    optional(this.paused, held.length ? `paused: ${held.join(', ')}` : '');
    text(this.message, why(addon));
    this.progress.update(addon);
    const all = KINDS.reduce((sum, kind) => sum + addon[kind], 0);
    text(this.total, `${number(addon.settled)} of ${counted(all, 'cluster')} settled`);
    text(this.pauseButton, addon.paused ? 'Resume…' : 'Pause…');
    attribute(this.body, 'data-state', addon.state);
    const { word } = stateOf(addon.state, addon.paused && addon.state !== 'Done');
    const title = `${addon.state === 'Failed' ? '✕ ' : ''}${addon.name}: ${word} · Aviary`;
    if (document.title !== title) document.title = title;
  }

  /** Highlights the clusters that match both the search and the legend. */
  matcher() {
    const wanted = this.search.value.trim().toLowerCase();
    const kind = this.legend.picked;
    if (!wanted && kind === null) return null;
    const { clusters } = this.rollout;
    const is = (row) => kind === null || clusters.kind[row] === kind;
    if (isSelector(wanted)) {
      const { asked, names } = this.labels;
      return asked === this.search.value.trim() && names ? (row) => is(row) && names.has(clusters.name[row]) : null;
    }
    const inWords = this.rollout.dictionary.map((entry) => entry.toLowerCase().includes(wanted));
    return (row) => is(row) && (!wanted || clusters.name[row].toLowerCase().includes(wanted) || inWords[clusters.message[row]] || inWords[clusters.revision[row]]);
  }

  find() {
    const asked = this.search.value.trim();
    if (isSelector(asked) && this.labels.asked !== asked) this.findLabels(asked);
    const matches = this.matcher();
    const { count, rows } = this.squares.highlight(matches);
    this.first = rows[0] ?? -1;
    const waits = isSelector(asked) && !matches;
    text(this.found, matches ? `${counted(count, 'cluster')} found` : waits ? this.labels.error || 'searching…' : '');
    this.results.update(matches ? rows : null);
  }

  /** Asks the server which clusters have labels: the page does not know them. */
  findLabels(asked) {
    this.labels = { asked, names: null, error: '' };
    clearTimeout(this.typing);
    this.typing = setTimeout(async () => {
      const answer = { asked, names: null, error: '' };
      try {
        const { clusters } = await get(`/api/addons/${encodeURIComponent(this.addon)}/clusters?labels=${encodeURIComponent(asked)}`);
        answer.names = new Set(clusters);
      } catch (error) {
        answer.error = error.message;
      }
      if (this.labels.asked !== asked || !this.built) return;
      this.labels = answer;
      this.find();
    }, TYPING);
  }

  searchKey(event) {
    if (event.key === 'Enter' && this.search.value.trim() && this.first >= 0) {
      event.preventDefault();
      this.squares.aim(this.first);
      this.squares.node.focus();
    } else if (event.key === 'Escape' && this.search.value) {
      event.preventDefault();
      this.search.value = '';
      this.find();
    }
  }

  /** Opens a cluster and puts it into the page's address. Focus returns to where it was. */
  go(cluster) {
    this.from = /** @type {HTMLElement | null} */ (document.activeElement);
    location.hash = `#/addon/${encodeURIComponent(this.addon)}/cluster/${encodeURIComponent(cluster)}`;
  }

  unselect() {
    history.replaceState(null, '', `#/addon/${encodeURIComponent(this.addon)}`);
    this.select(null);
  }

  select(cluster) {
    if (cluster === this.panel.cluster) return;
    this.squares?.point(-1);
    if (cluster === null) {
      this.panel.hide();
      this.squares?.choose(-1);
      if (this.from?.isConnected) this.from.focus({ preventScroll: true });
      this.from = null;
      return;
    }
    this.panel.open(cluster);
    this.looked = null;
    this.follow(true);
  }

  /** Keeps the selection on its cluster, and updates the panel. */
  follow(moved) {
    const { cluster } = this.panel;
    if (cluster === null || !this.built) return;
    const row = this.rollout.rowOf(cluster);
    const looked = row === undefined ? 'gone' : `${this.rollout.clusters.kind[row]} ${this.rollout.message(row)} ${this.rollout.revision(row)}`;
    if (moved || looked !== this.looked) this.squares.choose(row ?? -1);
    if (this.looked !== null && this.looked !== looked) this.panel.read();
    this.looked = looked;
  }
}

/**
 * The state in a sentence: what failed, what waits for what, or else what is under way.
 * @param {import('./messages').Sections} sections
 */
function why({ reasons, message }) {
  const most = (kind) => reasons.find((reason) => reason.kind === kind);
  const told = (reason, verb) => reason && `${counted(reason.count, 'cluster')} ${reason.count === 1 ? verb : verb.replace('waits', 'wait')}: ${reason.message.replace(/^failed: /, '')}.`;
  const parts = [told(most('failed'), 'failed'), told(most('waiting'), 'waits')].filter(Boolean);
  if (!parts.length) parts.push(told(most('inFlight'), 'in flight'));
  return parts.filter(Boolean).join(' ') || withoutCount(message);
}

/** Whether a search is one by labels: `key=value`, `key!=value` or `!key`. */
function isSelector(text) {
  return text.includes('=') || text.startsWith('!');
}
