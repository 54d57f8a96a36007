// @ts-check
// One square per cluster: grouped by placement, sorted by state, on one canvas per placement.
//
// A square shows only a state, so after a change only squares with another state are redrawn. The
// square under the pointer or the cursor is computed from coordinates. The cursor, the selection
// and the tooltip are above the canvas and need no redrawing.

import { attribute, framed, h, text } from './dom.js';
import { colours, drawMark, mark } from './marks.js';
import { KINDS, number, WORDS } from './words.js';

/** The distance between squares in CSS pixels: the largest at which all squares fit on the screen. */
const PITCHES = [26, 22, 19, 16, 14, 12, 10, 9, 8, 7, 6];
const FEW = 60;
const LARGEST_FOR_MANY = 19;
/** The maximum height of a placement before its squares get smaller. */
const HEIGHT = 420;
const DIM = 8;
const KIND = 7;

export class Squares {
  /** `on.open(cluster)` opens a cluster; `on.tell(text)` describes the one at the cursor. */
  constructor(rollout, on) {
    /** @type {import('./state').Rollout} */
    this.rollout = rollout;
    this.on = on;
    this.groups = [];
    this.cellOf = new Int32Array(0);
    this.groupOf = new Int32Array(0);
    this.hits = null;
    this.cursor = -1;
    this.chosen = -1;
    this.pitch = 0;
    this.tip = h('div.tip', { hidden: true });
    this.node = h('div.squares', {
      tabindex: 0,
      role: 'application',
      'aria-label': 'Clusters as squares. Arrow keys move, Home and End go to the ends, Page Up and Page Down change the placement, Enter opens a cluster.',
      keydown: (event) => this.key(event),
      focus: () => this.focused(),
      blur: () => this.point(-1),
    });
    this.relayout = framed(() => this.layout());
    this.sizes = new ResizeObserver(this.relayout);
    document.body.append(this.tip);
  }

  close() {
    this.relayout.cancel();
    this.sizes.disconnect();
    this.tip.remove();
  }

  /** Inserts a canvas for every placement. `places` are indexed by placement, in display order. */
  regroup(places) {
    const { name, placement, order } = this.rollout.clusters;
    const rows = new Map([...places.keys()].map((index) => [index, []]));
    for (let row = 0; row < placement.length; row += 1) rows.get(placement[row])?.push(row);
    const before = new Map(this.groups.map((group) => [group.place, group]));
    this.groups = [...places].map(([index, place]) => {
      const group = before.get(place) ?? this.group(place);
      before.delete(place);
      group.placement = index;
      group.rows = Int32Array.from(rows.get(index).sort((a, b) => order[a] - order[b] || (name[a] < name[b] ? -1 : 1)));
      group.cells = new Int32Array(group.rows.length);
      group.shown = null;
      attribute(group.canvas, 'hidden', !group.rows.length);
      return group;
    });
    for (const gone of before.values()) this.sizes.unobserve(gone.place);
    this.groupOf = new Int32Array(placement.length).fill(-1);
    this.cellOf = new Int32Array(placement.length);
    this.groups.forEach((group, at) => group.rows.forEach((row) => (this.groupOf[row] = at)));
    // Row numbers may have changed; the selection is looked up again by name.
    this.cursor = this.rollout.rowOf(this.aimedAt) ?? -1;
    this.chosen = -1;
    this.point(-1);
    this.layout();
  }

  group(place) {
    const canvas = h('canvas', { role: 'img' });
    const cursor = h('i.cursor', { hidden: true });
    const chosen = h('i.chosen', { hidden: true });
    const group = { place, canvas, cursor, chosen, context: canvas.getContext('2d'), columns: 1, lines: 0 };
    const at = (event) => this.rowUnder(group, event);
    canvas.addEventListener('pointermove', (event) => this.point(at(event), event));
    canvas.addEventListener('pointerleave', () => this.point(-1));
    canvas.addEventListener('click', (event) => {
      const row = at(event);
      if (row < 0) return;
      this.aim(row);
      this.on.open(this.rollout.clusters.name[row]);
    });
    place.replaceChildren(canvas, cursor, chosen);
    this.sizes.observe(place);
    return group;
  }

  /** Reads all widths, then writes all sizes, to avoid layout thrashing. */
  layout() {
    const widths = this.groups.map((group) => group.place.clientWidth);
    const total = this.rollout.clusters.name.length;
    const fits = (pitch) => this.groups.every((group, at) => Math.ceil(group.rows.length / across(widths[at], pitch)) * pitch <= HEIGHT);
    const allowed = PITCHES.filter((pitch) => total <= FEW || pitch <= LARGEST_FOR_MANY);
    this.pitch = allowed.find(fits) ?? PITCHES.at(-1);
    this.ratio = window.devicePixelRatio || 1;
    this.palette = colours(document.body);
    this.groups.forEach((group, at) => {
      group.columns = across(widths[at], this.pitch);
      group.lines = Math.ceil(group.rows.length / group.columns);
      const { canvas } = group;
      canvas.width = Math.round(group.columns * this.pitch * this.ratio);
      canvas.height = Math.round(group.lines * this.pitch * this.ratio);
      canvas.style.width = `${group.columns * this.pitch}px`;
      canvas.style.height = `${group.lines * this.pitch}px`;
      canvas.dataset.pitch = this.pitch;
      canvas.dataset.columns = group.columns;
      group.shown = null;
    });
    this.draw();
  }

  recolour() {
    this.palette = colours(document.body);
    for (const group of this.groups) group.shown = null;
    this.draw();
  }

  /** Sorts by state, and redraws the squares that have changed. Returns their number. */
  draw() {
    const { kind } = this.rollout.clusters;
    let drawn = 0;
    for (const group of this.groups) {
      const next = new Uint8Array(group.rows.length);
      let cell = 0;
      // Settled clusters fill it from the top; moving and failed ones are at the boundary.
      for (let sorted = 0; sorted < KINDS.length; sorted += 1) {
        for (const row of group.rows) {
          if (kind[row] !== KINDS[sorted]) continue;
          group.cells[cell] = row;
          this.cellOf[row] = cell;
          next[cell] = sorted | (this.hits && !this.hits[row] ? DIM : 0);
          cell += 1;
        }
      }
      for (let at = 0; at < cell; at += 1) {
        if (group.shown && group.shown[at] === next[at]) continue;
        this.square(group, at, next[at], group.shown !== null);
        drawn += 1;
      }
      group.shown = next;
    }
    this.place();
    return drawn;
  }

  square(group, cell, look, over) {
    const { context } = group;
    const x = Math.round((cell % group.columns) * this.pitch * this.ratio);
    const y = Math.round(Math.floor(cell / group.columns) * this.pitch * this.ratio);
    const pitch = Math.round(this.pitch * this.ratio);
    const gap = Math.max(1, Math.round((this.pitch > 12 ? 3 : this.pitch > 8 ? 2 : 1) * this.ratio));
    if (over) context.clearRect(x, y, pitch, pitch);
    context.globalAlpha = look & DIM ? 0.16 : 1;
    drawMark(context, KINDS[look & KIND], x, y, pitch - gap, this.palette);
  }

  /** Moves the cursor and the selection to the current squares of their clusters. */
  place() {
    this.groups.forEach((group, at) => {
      for (const [node, row] of [[group.cursor, this.cursor], [group.chosen, this.chosen]]) {
        const here = row >= 0 && this.groupOf[row] === at;
        attribute(node, 'hidden', !here);
        if (!here) continue;
        const cell = this.cellOf[row];
        const x = (cell % group.columns) * this.pitch;
        const y = Math.floor(cell / group.columns) * this.pitch;
        node.style.transform = `translate(${x}px, ${y}px)`;
        node.style.width = node.style.height = `${this.pitch - (this.pitch > 12 ? 3 : this.pitch > 8 ? 2 : 1)}px`;
      }
    });
  }

  /** The row at a position in a group, or -1. */
  rowAt(group, cell) {
    const cells = this.groups[group]?.cells;
    return cells && cell >= 0 && cell < cells.length ? cells[cell] : -1;
  }

  rowUnder(group, { offsetX, offsetY }) {
    const column = Math.floor(offsetX / this.pitch);
    if (offsetX < 0 || offsetY < 0 || column >= group.columns) return -1;
    const cell = Math.floor(offsetY / this.pitch) * group.columns + column;
    return cell < group.cells.length ? group.cells[cell] : -1;
  }

  /** The description of a cluster. */
  words(row) {
    const { name, kind, placement } = this.rollout.clusters;
    const place = this.rollout.addon.placements[placement[row]]?.name ?? 'no placement';
    return { name: name[row], kind: kind[row], place, message: this.rollout.message(row), revision: this.rollout.revision(row) };
  }

  /** Shows the tooltip next to the pointer, or next to the square. */
  point(row, event) {
    this.pointed = row;
    attribute(this.tip, 'hidden', row < 0);
    if (row < 0) return;
    const { name, kind, place, message, revision } = this.words(row);
    this.tip.replaceChildren(
      h('p.tip-name', {}, mark(kind), h('strong', {}, name)),
      h('p', {}, h('b', {}, WORDS[kind]), message ? `: ${message}` : ''),
      h('p.soft', {}, [place, revision].filter(Boolean).join(' · ')),
    );
    const group = this.groups[this.groupOf[row]];
    let { clientX: x, clientY: y } = event ?? {};
    if (!event) {
      const box = group.canvas.getBoundingClientRect();
      x = box.left + (this.cellOf[row] % group.columns) * this.pitch;
      y = box.top + Math.floor(this.cellOf[row] / group.columns) * this.pitch;
    }
    const { width, height } = this.tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(x + 16, document.documentElement.clientWidth - width - 8));
    const below = y + 24 + height < innerHeight;
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(below ? y + 24 : Math.max(8, y - height - 12))}px)`;
    if (event) this.tell(row);
  }

  tell(row) {
    const { name, kind, place, message, revision } = this.words(row);
    this.on.tell(`${name}, ${WORDS[kind]}${message ? `: ${message}` : ''}${revision ? `. Revision ${revision}` : ''}. ${place}`);
  }

  /** Puts the cursor on a cluster; it stays there when the order changes. */
  aim(row) {
    this.cursor = row;
    this.aimedAt = this.rollout.clusters.name[row];
  }

  /** With the keyboard, scrolls to the cursor. After a click, the square must stay under the pointer. */
  focused() {
    if (!this.node.matches(':focus-visible')) return;
    const first = this.groups.findIndex((group) => group.cells.length);
    this.moveTo(this.cursor >= 0 ? this.cursor : this.rowAt(first, 0));
  }

  /** Moves the cursor to a row. */
  moveTo(row) {
    if (row < 0) return;
    this.aim(row);
    this.place();
    this.point(row);
    this.tell(row);
    this.groups[this.groupOf[row]].cursor.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.node) return;
    const row = this.cursor;
    if (event.key === 'Escape') return this.point(-1);
    if (row < 0 || this.groupOf[row] < 0) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      return this.on.open(this.rollout.clusters.name[row]);
    }
    const next = this.step(event.key, this.groupOf[row], this.cellOf[row]);
    if (next === undefined) return;
    event.preventDefault();
    if (next >= 0) this.moveTo(next);
  }

  /** The target row of a key; -1 if there is none, undefined for other keys. */
  step(key, at, cell) {
    const group = this.groups[at];
    const last = group.cells.length - 1;
    const filled = (from, by) => {
      for (let next = from + by; this.groups[next]; next += by) if (this.groups[next].cells.length) return next;
      return -1;
    };
    const enter = (next, end) => (next < 0 ? -1 : this.rowAt(next, end === 'last' ? this.groups[next].cells.length - 1 : 0));
    switch (key) {
      case 'ArrowRight':
        return cell < last ? this.rowAt(at, cell + 1) : enter(filled(at, 1));
      case 'ArrowLeft':
        return cell > 0 ? this.rowAt(at, cell - 1) : enter(filled(at, -1), 'last');
      case 'ArrowDown':
        return cell + group.columns <= last ? this.rowAt(at, cell + group.columns) : this.rowAt(at, last);
      case 'ArrowUp':
        return cell >= group.columns ? this.rowAt(at, cell - group.columns) : -1;
      case 'Home':
        return enter(filled(-1, 1));
      case 'End':
        return enter(filled(this.groups.length, -1), 'last');
      case 'PageDown':
        return enter(filled(at, 1));
      case 'PageUp':
        return enter(filled(at, -1));
      default:
        return undefined;
    }
  }

  /** Dims every cluster that does not match. Returns how many do, and their rows in the order of the squares. */
  highlight(matches) {
    const { name } = this.rollout.clusters;
    let count = 0;
    this.hits = matches ? new Uint8Array(name.length) : null;
    for (let row = 0; matches && row < name.length; row += 1) {
      if (!matches(row)) continue;
      this.hits[row] = 1;
      count += 1;
    }
    this.draw();
    const rows = [];
    if (count) for (const group of this.groups) for (const row of group.cells) if (this.hits[row]) rows.push(row);
    return { count, rows };
  }

  choose(row) {
    this.chosen = row;
    this.place();
  }

  /** After a change: redraws, and updates the description if the cluster at the cursor has changed. */
  refresh() {
    this.draw();
    if (this.pointed >= 0 && document.activeElement === this.node) this.point(this.pointed);
  }

  /** The description of each canvas for screen readers. */
  describe(placements) {
    for (const group of this.groups) {
      const name = placements[group.placement]?.name ?? 'no placement';
      attribute(group.canvas, 'aria-label', `${name}: ${number(group.rows.length)} clusters`);
    }
  }
}

function across(width, pitch) {
  return Math.max(1, Math.floor(width / pitch));
}

/** The legend: the marks with their counts; each is a button that highlights its state. */
export class Legend {
  constructor(pick) {
    /** @type {import('./messages').ClusterKind | null} */
    this.picked = null;
    this.counts = KINDS.map(() => h('span.numbers', {}, ''));
    this.buttons = KINDS.map((kind, at) =>
      h('button.key', { type: 'button', 'aria-pressed': 'false', click: () => pick(this.pick(kind)) }, mark(kind), this.counts[at], h('span', {}, WORDS[kind])),
    );
    this.node = h('div.legend', { role: 'group', 'aria-label': 'States' }, ...this.buttons);
  }

  pick(kind) {
    this.picked = this.picked === kind ? null : kind;
    this.buttons.forEach((button, at) => attribute(button, 'aria-pressed', KINDS[at] === this.picked ? 'true' : 'false'));
    return this.picked;
  }

  /** @param {import('./messages').ClusterKind[]} kinds */
  update(kinds) {
    const counts = new Map();
    for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    KINDS.forEach((kind, at) => text(this.counts[at], number(counts.get(kind) ?? 0)));
    // Leaving is rare: it is there when it is needed.
    attribute(this.buttons[KINDS.indexOf('leaving')], 'hidden', !counts.has('leaving'));
  }
}
