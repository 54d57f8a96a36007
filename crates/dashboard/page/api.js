// @ts-check
// Requests to the server that this page came from, with the token that they need.

const KEY = 'aviary-token';

/** The token was refused, or there is none. */
export class Refused extends Error {}

/** Any other error of the server, with a message for the user. */
export class Failed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? '',
  keep: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** Takes the token from `#token=…` and removes it from the address bar and the history. */
export function takeToken() {
  const found = /^#token=([^&/]+)(.*)$/.exec(location.hash);
  if (!found) return;
  token.keep(decodeURIComponent(found[1]));
  const rest = found[2].startsWith('/') ? `#${found[2]}` : '#/';
  history.replaceState(null, '', location.pathname + rest);
}

/** Sends a request with the token; throws unless it succeeds. */
export async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${token.get()}`, ...options.headers };
  const answer = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit', redirect: 'error' });
  if (answer.ok) return answer;
  const message = await sentence(answer);
  throw answer.status === 401 ? new Refused(message) : new Failed(answer.status, message);
}

export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

export async function post(path, body, signal) {
  const headers = { 'Content-Type': 'application/json' };
  return (await ask(path, { method: 'POST', headers, body: JSON.stringify(body), signal })).json();
}

async function sentence(answer) {
  try {
    const { error } = await answer.json();
    if (error) return error;
  } catch {
    // The response is not from our server, or was cut off: only the status is known.
  }
  return `The server answered ${answer.status} ${answer.statusText}`.trim();
}
