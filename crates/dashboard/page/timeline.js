// @ts-check
// How the rollout went: settled, in flight, failed and waiting over time, one upon the other.

import { attribute, framed, h, svg, text } from './dom.js';
import { section } from './sections.js';
import { mark } from './marks.js';
import { clock, duration, hubNow, KINDS, number, WORDS } from './words.js';

const LAYERS = 4;
/** The minimum time between two drawings, in milliseconds. */
const BETWEEN = 500;
const LEFT = 54;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 26;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800];

export class Timeline {
  /** @param {import('./state').Rollout} rollout */
  constructor(rollout) {
    this.rollout = rollout;
    this.at = -1;
    this.grid = svg('g', {});
    this.layers = KINDS.slice(0, LAYERS).map((kind) => svg('path', { class: `area-${kind}` }));
    this.edges = KINDS.slice(0, 3).map((kind) => svg('path', { class: `edge edge-${kind}` }));
    this.hair = svg('path', { class: 'hair' });
    this.drawing = svg('svg', { role: 'img', 'aria-labelledby': 'timeline-summary' }, ...this.layers.slice(0, 2), ...this.edges, ...this.layers.slice(2), this.grid, this.hair);
    this.readout = h('p.readout.numbers', { 'aria-live': 'polite' });
    this.summary = h('p.fine', { id: 'timeline-summary' }, '');
    this.figure = h('div.chart', {
      tabindex: 0,
      role: 'group',
      'aria-label': 'Timeline. Use the left and right arrow keys to read it.',
      pointermove: (event) => this.read(this.pointAt(event)),
      pointerleave: () => this.read(-1),
      blur: () => this.read(-1),
      keydown: (event) => this.key(event),
    }, this.drawing);
    this.node = section('timeline', 'Timeline', null, this.figure, this.readout, this.summary);
    this.frame = framed(() => this.draw());
    this.sizes = new ResizeObserver(this.frame);
    this.sizes.observe(this.figure);
  }

  close() {
    clearTimeout(this.timer);
    this.frame.cancel();
    this.sizes.disconnect();
  }

  /** Schedules a drawing. A chart of minutes need not be drawn with every change. */
  ask() {
    if (!this.shown) return this.frame();
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.frame();
    }, BETWEEN);
  }

  /** The points, and one for now with the last known counts. */
  points() {
    const { timeline } = this.rollout;
    const last = timeline.at(-1);
    if (!last) return [];
    const now = Math.floor(hubNow() / 1000);
    return now > last[0] ? [...timeline, [now, ...last.slice(1)]] : timeline;
  }

  draw() {
    const points = this.points();
    const width = this.figure.clientWidth;
    const height = this.figure.clientHeight;
    if (!width || !points.length) return this.tell(points);
    attribute(this.drawing, 'viewBox', `0 0 ${width} ${height}`);
    const from = points[0][0];
    const span = Math.max(1, points.at(-1)[0] - from);
    const most = Math.max(1, ...points.map((point) => point[1] + point[2] + point[3] + point[4]));
    this.x = (seconds) => LEFT + ((width - LEFT - RIGHT) * (seconds - from)) / span;
    this.y = (count) => height - BOTTOM - ((height - TOP - BOTTOM) * count) / most;
    this.shown = points;
    const heights = points.map((point) => {
      let sum = 0;
      return [0, ...point.slice(1, 1 + LAYERS).map((count) => (sum += count))];
    });
    this.layers.forEach((path, layer) => attribute(path, 'd', this.area(heights, layer)));
    this.edges.forEach((path, layer) => attribute(path, 'd', this.edge(heights, layer + 1)));
    this.axes(from, span, most, width, height);
    this.tell(points);
    if (this.at >= 0) this.read(this.at);
  }

  /** A count holds until the next reading, so the lines are steps. */
  edge(heights, level) {
    return this.shown.map((point, at) => `${at ? 'H' : 'M'}${this.x(point[0]).toFixed(1)}${at ? 'V' : ' '}${this.y(heights[at][level]).toFixed(1)}`).join('');
  }

  area(heights, layer) {
    if (heights.every((height) => height[layer] === height[layer + 1])) return '';
    let path = this.edge(heights, layer + 1);
    for (let at = this.shown.length - 1; at >= 0; at -= 1) {
      path += `${at === this.shown.length - 1 ? '' : `H${this.x(this.shown[at + 1][0]).toFixed(1)}`}V${this.y(heights[at][layer]).toFixed(1)}`;
    }
    return `${path}H${this.x(this.shown[0][0]).toFixed(1)}Z`;
  }

  axes(from, span, most, width, height) {
    const parts = [];
    const step = niceCount(most / 4);
    for (let count = 0; count <= most; count += step) {
      const y = this.y(count).toFixed(1);
      parts.push(svg('path', { class: 'grid', d: `M${LEFT} ${y}H${width - RIGHT}` }), svg('text', { x: LEFT - 8, y: Number(y) + 4, 'text-anchor': 'end' }, number(count)));
    }
    const wide = Math.max(2, Math.floor((width - LEFT) / 110));
    const every = STEPS.find((seconds) => span / seconds <= wide) ?? STEPS.at(-1) * Math.ceil(span / STEPS.at(-1) / wide);
    for (let at = Math.ceil(from / every) * every; at <= from + span; at += every) {
      const x = this.x(at);
      if (x > width - RIGHT - 20 || x < LEFT + 10) continue;
      parts.push(svg('path', { class: 'tick', d: `M${x.toFixed(1)} ${height - BOTTOM}v4` }), svg('text', { x: x.toFixed(1), y: height - 6, 'text-anchor': 'middle' }, tickWords(at, every)));
    }
    this.grid.replaceChildren(...parts);
  }

  /** The chart as text. */
  tell(points) {
    if (!points.length) return text(this.summary, 'Nothing has been recorded yet.');
    const [first, last] = [points[0], points.at(-1)];
    const counts = (point) => KINDS.slice(0, LAYERS).map((kind, at) => `${number(point[at + 1])} ${WORDS[kind]}`).join(', ');
    const worst = Math.max(...points.map((point) => point[3]));
    const peak = Math.max(...points.map((point) => point[2]));
    const times = `${clock(first[0] * 1000)} to ${clock(last[0] * 1000)}, ${duration((last[0] - first[0]) * 1000)}`;
    text(this.summary, `${times}. At the start ${counts(first)}; now ${counts(last)}. Peak: ${number(peak)} in flight, ${number(worst)} failed.`);
  }

  pointAt({ clientX }) {
    if (!this.shown) return -1;
    const x = clientX - this.figure.getBoundingClientRect().left;
    let at = this.shown.findIndex((point) => this.x(point[0]) > x);
    if (at < 0) at = this.shown.length;
    return Math.max(0, at - 1);
  }

  key(event) {
    if (!this.shown || !['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key)) return;
    event.preventDefault();
    const last = this.shown.length - 1;
    const stride = Math.max(1, Math.round(last / 40));
    const from = this.at < 0 ? last : this.at;
    const to = { ArrowLeft: from - stride, ArrowRight: from + stride, Home: 0, End: last }[event.key];
    this.read(Math.min(last, Math.max(0, to)));
  }

  read(at) {
    this.at = at;
    const point = this.shown?.[at];
    attribute(this.hair, 'd', point ? `M${this.x(point[0]).toFixed(1)} ${TOP}V${this.figure.clientHeight - BOTTOM}` : null);
    if (!point) return this.readout.replaceChildren(...KINDS.slice(0, LAYERS).map((kind) => h('span', {}, mark(kind), WORDS[kind])));
    const parts = KINDS.slice(0, LAYERS).map((kind, at) => h('span', {}, mark(kind), `${number(point[at + 1])} ${WORDS[kind]}`));
    this.readout.replaceChildren(h('strong', {}, clock(point[0] * 1000)), ...parts);
  }
}

function niceCount(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? 10 * power;
}

function tickWords(seconds, every) {
  const date = new Date(seconds * 1000);
  if (every >= 86400) return date.toLocaleDateString('en-CA').slice(5);
  return clock(date).slice(0, every < 60 ? 8 : 5);
}
