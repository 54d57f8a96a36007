// @ts-check
// One word per thing, for states, counts and times.

/** @typedef {import('./messages').ClusterKind} ClusterKind */

/**
 * What a cluster can be, in the order in which squares, bars and charts show it.
 * @type {ClusterKind[]}
 */
export const KINDS = ['settled', 'inFlight', 'failed', 'waiting', 'leaving'];

/** @type {Record<ClusterKind, string>} */
export const WORDS = { settled: 'settled', inFlight: 'in flight', failed: 'failed', waiting: 'waiting', leaving: 'leaving' };

/**
 * States of add-ons and placements: the word, and the mark that stands for it.
 * @type {Record<string, [string, ClusterKind | 'paused']>}
 */
const STATES = {
  Done: ['Done', 'settled'],
  Progressing: ['Progressing', 'inFlight'],
  Failed: ['Failed', 'failed'],
  LeftAlone: ['Not managed', 'leaving'],
  Installing: ['Installing', 'inFlight'],
  Installed: ['Installed', 'settled'],
  Upgrading: ['Upgrading', 'inFlight'],
  Upgraded: ['Upgraded', 'settled'],
  WaitingForCanary: ['Waiting for canary', 'waiting'],
  Paused: ['Paused', 'paused'],
  Empty: ['Empty', 'leaving'],
  Undecided: ['Undecided', 'leaving'],
};

export function stateOf(state, paused = false) {
  const [word, mark] = STATES[paused ? 'Paused' : state] ?? [state, 'waiting'];
  return { word, mark };
}

const numbers = new Intl.NumberFormat('en');

export function number(count) {
  return numbers.format(count);
}

export function counted(count, what) {
  return `${number(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** How far the hub's clock is ahead of this one, in milliseconds: ages use the hub's clock. */
let ahead = 0;

export function hubSays(now) {
  const at = Date.parse(now);
  if (Number.isFinite(at)) ahead = at - Date.now();
}

/** When the page was last up to date, while it is not. @type {number | null} */
let frozen = null;

/** Stops the hub's clock at a time, while nothing newer is known: an age must not grow on stale data. */
export function freeze(at) {
  frozen = at;
}

export function hubNow() {
  return frozen ?? Date.now() + ahead;
}

/** A time of this page's clock, as a time of the hub's. */
export function atHub(here) {
  return here + ahead;
}

export function clock(date) {
  return new Date(date).toLocaleTimeString('en-GB');
}

/** The time of day, with the date if it is not today. */
export function moment(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '';
  const today = new Date(hubNow()).toDateString() === date.toDateString();
  return today ? clock(date) : `${date.toLocaleDateString('en-CA')} ${clock(date)}`;
}

export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

/** How long something has lasted, or nothing if its start is unknown. */
export function since(at) {
  const from = at ? Date.parse(at) : NaN;
  return Number.isFinite(from) ? duration(hubNow() - from) : '';
}

/** How long clusters have been waiting, or nothing if they began just now. */
export function waited(at) {
  const from = at ? Date.parse(at) : NaN;
  return hubNow() - from >= 1000 ? duration(hubNow() - from) : '';
}

/**
 * A message of a placement without its count: the figures on the page count something else, the settled clusters.
 * The message of an add-on may begin with the name of a placement.
 * @param {string} message
 */
export function withoutCount(message) {
  return message.replace(/^(\S+\/\S+: )?\d+\/\d+ /, '$1');
}

/** The last part of `namespace/name`. */
export function short(name) {
  return name.slice(name.indexOf('/') + 1);
}
