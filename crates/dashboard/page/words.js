// One word per thing, for states, counts and times.

/** What a cluster can be, by its number on the wire. */
export const KINDS = ['settled', 'in flight', 'failed', 'waiting', 'removing'];
export const SETTLED = 0;
export const IN_FLIGHT = 1;
export const FAILED = 2;
export const WAITING = 3;
export const REMOVING = 4;

/** States of add-ons and placements: the word, and the kind whose mark stands for it. */
const STATES = {
  Done: ['Done', SETTLED],
  Progressing: ['Progressing', IN_FLIGHT],
  Failed: ['Failed', FAILED],
  LeftAlone: ['Left alone', REMOVING],
  Installing: ['Installing', IN_FLIGHT],
  Installed: ['Installed', SETTLED],
  Upgrading: ['Upgrading', IN_FLIGHT],
  Upgraded: ['Upgraded', SETTLED],
  WaitingForCanary: ['Waiting for canary', WAITING],
  Paused: ['Paused', 'paused'],
  Empty: ['Empty', REMOVING],
};

export function stateOf(state, paused = false) {
  const [word, mark] = STATES[paused ? 'Paused' : state] ?? [state, WAITING];
  return { word, mark };
}

const numbers = new Intl.NumberFormat('en');

export function number(count) {
  return numbers.format(count);
}

export function counted(count, what) {
  return `${number(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** How far the hub's clock is ahead of this one, in milliseconds: ages are told by the hub's. */
let ahead = 0;

export function hubSays(now) {
  const at = Date.parse(now);
  if (Number.isFinite(at)) ahead = at - Date.now();
}

export function hubNow() {
  return Date.now() + ahead;
}

export function clock(date) {
  return new Date(date).toLocaleTimeString('en-GB');
}

/** A time of today as a clock, an older one with its date. */
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

/** How long something has lasted, or nothing if it is not known since when. */
export function since(at) {
  const from = at ? Date.parse(at) : NaN;
  return Number.isFinite(from) ? duration(hubNow() - from) : '';
}

/** The last part of `namespace/name`: what people call it. */
export function short(name) {
  return name.slice(name.indexOf('/') + 1);
}
