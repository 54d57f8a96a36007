// @ts-check
// The marks of the states: a shape each, so that they can be told apart without colour. The same shapes in drawings and on the canvas.

import { svg } from './dom.js';
import { KINDS } from './words.js';

const SHAPES = {
  settled: () => [svg('rect', { x: 1, y: 1, width: 14, height: 14, rx: 2.5, fill: 'currentColor' })],
  inFlight: () => [
    svg('rect', { x: 2, y: 2, width: 12, height: 12, rx: 2, fill: 'none', stroke: 'currentColor', 'stroke-width': 2 }),
    svg('path', { d: 'M2 8h12v4a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2z', fill: 'currentColor' }),
  ],
  failed: () => [svg('path', { d: 'M3 3l10 10M13 3L3 13', stroke: 'currentColor', 'stroke-width': 3.2, 'stroke-linecap': 'square' })],
  waiting: () => [svg('rect', { x: 2, y: 2, width: 12, height: 12, rx: 2, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.6 })],
  leaving: () => [svg('path', { d: 'M2 8h12', stroke: 'currentColor', 'stroke-width': 3 })],
  paused: () => [svg('path', { d: 'M5 2.500v11M11 2.500v11', stroke: 'currentColor', 'stroke-width': 3.4 })],
};

/**
 * A small drawing of a state's mark. The word stands beside it, so it says nothing to a screen reader.
 * @param {import('./messages').ClusterKind | 'paused'} kind
 */
export function mark(kind) {
  return svg('svg', { class: `mark k-${kind}`, viewBox: '0 0 16 16', 'aria-hidden': 'true' }, ...SHAPES[kind]());
}

/** The current colours of the kinds, read from elements that use them. */
export function colours(host) {
  const probe = host.appendChild(svg('svg', { class: 'probe', 'aria-hidden': 'true' }));
  const read = (name) => {
    probe.setAttribute('class', `probe ${name}`);
    return getComputedStyle(probe).color;
  };
  const found = { kinds: Object.fromEntries(KINDS.map((kind) => [kind, read(`k-${kind}`)])), tint: read('k-failed-tint') };
  probe.remove();
  return found;
}

/** Draws one mark into a square of `size` device pixels. Whole pixels only: at this size a blurred edge changes the shape. */
export function drawMark(context, kind, x, y, size, palette) {
  const colour = palette.kinds[kind];
  const line = Math.max(1, Math.round(size / 8));
  context.fillStyle = colour;
  switch (kind) {
    case 'settled':
      return rounded(context, x, y, size);
    case 'inFlight': {
      frame(context, x, y, size, line);
      const half = Math.floor(size / 2);
      return context.fillRect(x, y + size - half, size, half);
    }
    case 'failed': {
      context.fillStyle = palette.tint;
      rounded(context, x, y, size);
      context.strokeStyle = colour;
      context.lineWidth = Math.max(1.4, size / 5);
      const inset = size * 0.16;
      context.beginPath();
      context.moveTo(x + inset, y + inset);
      context.lineTo(x + size - inset, y + size - inset);
      context.moveTo(x + size - inset, y + inset);
      context.lineTo(x + inset, y + size - inset);
      return context.stroke();
    }
    case 'leaving': {
      const high = Math.max(2, Math.round(size / 4));
      return context.fillRect(x, y + Math.round((size - high) / 2), size, high);
    }
    default:
      return frame(context, x, y, size, line);
  }
}

function rounded(context, x, y, size) {
  if (size < 10) return context.fillRect(x, y, size, size);
  context.beginPath();
  context.roundRect(x, y, size, size, Math.round(size / 7));
  context.fill();
}

/** A hollow square of four bars: sharper and cheaper than a stroke. */
function frame(context, x, y, size, line) {
  context.fillRect(x, y, size, line);
  context.fillRect(x, y + size - line, size, line);
  context.fillRect(x, y + line, line, size - 2 * line);
  context.fillRect(x + size - line, y + line, line, size - 2 * line);
}
