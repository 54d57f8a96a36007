// Elements without markup: whatever a text from a cluster holds, it stays text.

const SVG = 'http://www.w3.org/2000/svg';

/** An element, as in `h('p.note', {title: 'why'}, 'text', child)`. Functions are listeners, everything else is an attribute. */
export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split('.');
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(' ');
  set(node, attributes);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** The same in a drawing. */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  set(node, attributes);
  node.append(...children);
  return node;
}

function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') node.addEventListener(key, value);
    else attribute(node, key, value);
  }
}

/** Sets an attribute if it differs: a page at rest must not be touched. */
export function attribute(node, key, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(key)) node.removeAttribute(key);
  } else {
    const text = value === true ? '' : String(value);
    if (node.getAttribute(key) !== text) node.setAttribute(key, text);
  }
}

/** Sets a text if it differs, so that a selection in it survives. */
export function text(node, value) {
  const next = value ?? '';
  if (node.textContent !== next) node.textContent = next;
}

/** Sets a text, and takes the element away where there is none. */
export function optional(node, value) {
  text(node, value);
  attribute(node, 'hidden', !value);
}

const lists = new WeakMap();

/**
 * Makes the children of `parent` be the views of `items`, in order. A view is `{node, update(item)}`, made once per key: an element that is
 * still wanted is never replaced, so what is focused, selected or scrolled in it stays.
 */
export function keyed(parent, items, keyOf, make) {
  const before = lists.get(parent) ?? new Map();
  const after = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    let key = keyOf(item);
    while (after.has(key)) key += '\u0000';
    const view = before.get(key) ?? make(item);
    after.set(key, view);
    view.update(item);
    if (view.node === place) place = place.nextSibling;
    else parent.insertBefore(view.node, place);
  }
  for (const [key, view] of before) if (!after.has(key)) view.node.remove();
  lists.set(parent, after);
  return after;
}

/** Runs `draw` once in the next frame, however often it is asked to. */
export function framed(draw) {
  let asked = 0;
  const ask = () => {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      draw();
    });
  };
  ask.cancel = () => {
    cancelAnimationFrame(asked);
    asked = 0;
  };
  return ask;
}
