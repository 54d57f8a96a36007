// @ts-check
// What is known of one add-on, kept up to date by deltas. Owns no element of the page.

/**
 * @typedef {import('./messages').Sections} Sections
 * @typedef {import('./messages').Point} Point
 * @typedef {import('./messages').ClusterKind} ClusterKind
 * @typedef {import('./messages').ClusterColumns} ClusterColumns
 * @typedef {Omit<ClusterColumns, 'kind'> & {kind: ClusterKind[]}} Clusters
 */

/** More points than this are more than a screen can show. */
const MOST_POINTS = 1200;
/** Fields of a delta that have their own way in; every other field is a section, and is replaced whole. */
const APART = new Set(['clusters', 'dictionary', 'timeline', 'dictionaryAppend', 'dictionarySet', 'timelineAppend', 'revisionClusters', 'rows', 'append', 'now']);

export class Rollout {
  constructor() {
    /** @type {Sections | null} */
    this.addon = null;
    this.forget();
    /**
     * What has changed since it was last drawn: names of sections, 'rows' and 'all'.
     * @type {Set<string>}
     */
    this.changed = new Set();
  }

  forget() {
    /** @type {string[]} */
    this.dictionary = [];
    /** @type {Point[]} */
    this.timeline = [];
    /** @type {Clusters} */
    this.clusters = { name: [], placement: [], kind: [], message: [], revision: [], order: [] };
    /** @type {Map<string, number>} */
    this.index = new Map();
  }

  /**
   * Takes a whole new state in.
   * @param {import('./messages').AddOnMessage} message
   */
  replace({ now, timeline, dictionary, clusters, ...sections }) {
    this.forget();
    this.addon = sections;
    this.dictionary = dictionary;
    this.timeline = timeline;
    this.clusters = this.read(clusters);
    this.remember(0);
    this.changed.add('all');
  }

  /**
   * Takes in what is different.
   * @param {import('./messages').AddOnDelta} delta
   */
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
      // Many clusters share one reason, and its text contains a count.
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
      kind[row] = this.kindAt(now[0]);
      [, message[row], revision[row]] = now;
      this.changed.add('rows');
    }
    if (delta.append) this.append(this.read(delta.append));
  }

  /** @param {Clusters} more */
  append(more) {
    const first = this.clusters.name.length;
    for (const key of Object.keys(this.clusters)) for (const value of more[key]) this.clusters[key].push(value);
    this.remember(first);
    // The layout of the squares has to be computed again.
    this.changed.add('layout');
  }

  /** @param {Point[]} points */
  extend(points) {
    this.timeline.push(...points);
    this.changed.add('timeline');
    if (this.timeline.length <= MOST_POINTS) return;
    // Removes every second point of the older part: the distant past may be coarse.
    const keep = this.timeline.length - MOST_POINTS / 4;
    this.timeline = this.timeline.filter((_, at) => at >= keep || at % 2 === 0);
  }

  remember(first) {
    const { name } = this.clusters;
    for (let row = first; row < name.length; row += 1) this.index.set(name[row], row);
  }

  /**
   * Columns as they are used here: kinds by name.
   * @param {ClusterColumns} columns
   * @returns {Clusters}
   */
  read(columns) {
    return { ...columns, kind: columns.kind.map((place) => this.kindAt(place)) };
  }

  /**
   * @param {number} place
   * @returns {ClusterKind}
   */
  kindAt(place) {
    return /** @type {ClusterKind} */ (this.dictionary[place] ?? 'waiting');
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

  /** Returns what has to be drawn, and resets it. */
  take() {
    const { changed } = this;
    this.changed = new Set();
    return changed;
  }
}
