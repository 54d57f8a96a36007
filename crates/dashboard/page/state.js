// What is known of one add-on, kept up to date by deltas. Owns no element of the page.

/** More points than this are more than a screen can show. */
const MOST_POINTS = 1200;
/** Sections of a detail that a delta replaces whole; everything else in it has its own way in. */
const APART = new Set(['clusters', 'dictionary', 'timeline', 'dictionaryAppend', 'dictionarySet', 'timelineAppend', 'revisionClusters', 'rows', 'append', 'now']);

export class Rollout {
  constructor() {
    this.addon = null;
    this.forget();
    /** What has changed since it was last drawn: names of sections, 'rows' and 'all'. */
    this.changed = new Set();
  }

  forget() {
    this.dictionary = [];
    this.timeline = [];
    this.clusters = columns({});
    this.index = new Map();
  }

  /** Takes a whole new state in. */
  replace(detail) {
    this.forget();
    this.addon = {};
    for (const [key, value] of Object.entries(detail)) if (!APART.has(key)) this.addon[key] = value;
    this.dictionary = detail.dictionary ?? [];
    this.timeline = detail.timeline ?? [];
    this.clusters = columns(detail.clusters ?? {});
    this.remember(0);
    this.changed.add('all');
  }

  /** Takes in what is different. */
  apply(delta) {
    if (!this.addon) return;
    for (const [key, value] of Object.entries(delta)) {
      if (APART.has(key)) continue;
      this.addon[key] = value;
      this.changed.add(key);
    }
    (delta.revisionClusters ?? []).forEach((clusters, at) => {
      if (this.addon.revisions[at]) this.addon.revisions[at].clusters = clusters;
      this.changed.add('revisions');
    });
    for (const entry of delta.dictionaryAppend ?? []) this.dictionary.push(entry);
    for (const [at, entry] of delta.dictionarySet ?? []) {
      // Many clusters wait for the same thing, and its words have a number in them.
      this.dictionary[at] = entry;
      this.changed.add('rows');
    }
    if (delta.timeline) {
      this.timeline = delta.timeline;
      this.changed.add('timeline');
    }
    if (delta.timelineAppend) this.extend(delta.timelineAppend);
    const { kind, message, revision } = this.clusters;
    for (const [row, ...now] of delta.rows ?? []) {
      if (row >= kind.length) continue;
      [kind[row], message[row], revision[row]] = now;
      this.changed.add('rows');
    }
    if (delta.append) this.append(columns(delta.append));
  }

  append(more) {
    const first = this.clusters.name.length;
    for (const key of Object.keys(this.clusters)) for (const value of more[key]) this.clusters[key].push(value);
    this.remember(first);
    // The squares have to be laid out anew.
    this.changed.add('layout');
  }

  extend(points) {
    this.timeline.push(...points);
    this.changed.add('timeline');
    if (this.timeline.length <= MOST_POINTS) return;
    // Every second point goes, save the newest: what is long ago may be coarse.
    const keep = this.timeline.length - MOST_POINTS / 4;
    this.timeline = this.timeline.filter((_, at) => at >= keep || at % 2 === 0);
  }

  remember(first) {
    const { name } = this.clusters;
    for (let row = first; row < name.length; row += 1) this.index.set(name[row], row);
  }

  /** The row of a cluster, or undefined. */
  rowOf(cluster) {
    return this.index.get(cluster);
  }

  message(row) {
    return this.dictionary[this.clusters.message[row]] ?? '';
  }

  revision(row) {
    return this.dictionary[this.clusters.revision[row]] ?? '';
  }

  /** Takes note of what has to be drawn, and forgets it. */
  take() {
    const { changed } = this;
    this.changed = new Set();
    return changed;
  }
}

function columns(from) {
  const { name = [], placement = [], kind = [], message = [], revision = [], order = [] } = from;
  return { name, placement, kind, message, revision, order };
}

/** Placements in the order in which a change reaches them: a canary comes before what waits for it. Indices of the array as sent. */
export function rolloutOrder(placements) {
  const byName = new Map(placements.map((placement, index) => [placement.name, index]));
  const inOrder = placements.map((_, index) => index);
  inOrder.sort((a, b) => placements[a].position - placements[b].position);
  const done = new Set();
  const visit = (index) => {
    if (done.has(index)) return;
    done.add(index);
    const canary = byName.get(placements[index].gate?.canary);
    if (canary !== undefined) visit(canary);
    order.push(index);
  };
  const order = [];
  inOrder.forEach(visit);
  return order;
}
