// @ts-check
// Elements without markup: whatever a text from a cluster holds, it stays text.

const SVG = 'http://www.w3.org/2000/svg';

// Characters that have an effect instead of being visible: control characters other than white
// space, those that change the direction of text, and zero-width characters.
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f]/gu;

/** Escapes hidden characters, so that no name or message can look like another. */
export function visible(value) {
  return String(value).replace(HIDDEN, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);
}

const shown = (child) => (child instanceof Node ? child : visible(child));

/** Creates an element, as in `h('p.note', {title: 'why'}, 'text', child)`. Functions are listeners, everything else is an attribute. */
export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split('.');
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(' ');
  set(node, attributes);
  node.append(...children.filter((child) => child !== null && child !== undefined).map(shown));
  return node;
}

/** The same for SVG. */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  set(node, attributes);
  node.append(...children.map(shown));
  return node;
}

function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') node.addEventListener(key, value);
    else attribute(node, key, value);
  }
}

/** Sets an attribute if it differs: without changes the DOM must not be modified. */
export function attribute(node, key, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(key)) node.removeAttribute(key);
  } else {
    const text = value === true ? '' : visible(value);
    if (node.getAttribute(key) !== text) node.setAttribute(key, text);
  }
}

/** Sets a text if it differs, so that a selection in it survives. */
export function text(node, value) {
  const next = visible(value ?? '');
  if (node.textContent !== next) node.textContent = next;
}

/** Sets a text, and hides the element if the text is empty. */
export function optional(node, value) {
  text(node, value);
  attribute(node, 'hidden', !value);
}

const lists = new WeakMap();

/**
 * Makes the children of `parent` the views of `items`, in order. A view is `{node, update(item)}`, created once per key: an element that is
 * still needed is never replaced, so its focus, selection and scroll position stay.
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

/** Runs `draw` once in the next frame, however often it is called. */
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
