// @ts-check
// Server-sent events over fetch, because EventSource cannot send a token. A cut connection is taken up where it ended.

import { ask, Refused } from './api.js';

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
/** The server sends a keep-alive every 15 s; after this silence the connection counts as dead. */
const SILENCE = 40_000;

/**
 * Follows `path` until `stop` is called. `on` has `event(name, data)`, `state('live' | 'reconnecting', since)` and `refused(message)`.
 */
export class Stream {
  constructor(path, on) {
    this.path = path;
    this.on = on;
    this.last = '';
    this.pause = FIRST_PAUSE;
    this.since = Date.now();
    this.stopped = false;
    this.wake = () => {};
    this.hurry = () => {
      if (document.visibilityState !== 'visible') return;
      this.pause = FIRST_PAUSE;
      this.wake();
    };
    addEventListener('online', this.hurry);
    document.addEventListener('visibilitychange', this.hurry);
    this.run();
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    this.wake();
    removeEventListener('online', this.hurry);
    document.removeEventListener('visibilitychange', this.hurry);
  }

  async run() {
    while (!this.stopped) {
      try {
        await this.connect();
      } catch (error) {
        if (this.stopped) return;
        if (error instanceof Refused) return this.on.refused(error.message);
        this.cause = error.message;
      }
      if (this.stopped) return;
      this.since ??= Date.now();
      this.on.state('reconnecting', this.since, this.cause);
      // Random, so that many pages do not reconnect at the same moment.
      await this.rest(this.pause * (0.5 + Math.random() / 2));
      this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    }
  }

  rest(milliseconds) {
    return new Promise((done) => {
      const timer = setTimeout(done, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  async connect() {
    const abort = new AbortController();
    this.abort = abort;
    let watchdog = setTimeout(() => abort.abort(), SILENCE);
    try {
      const headers = { Accept: 'text/event-stream' };
      if (this.last) headers['Last-Event-ID'] = this.last;
      const answer = await ask(this.path, { headers, signal: abort.signal });
      this.since = null;
      this.on.state('live');
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser((event) => this.take(event));
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.stopped) return;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), SILENCE);
        parser.push(value);
      }
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
  }

  take({ id, name, data }) {
    if (this.stopped) return;
    this.pause = FIRST_PAUSE;
    this.on.event(name, JSON.parse(data));
    // Only a processed event counts as seen.
    if (id !== null) this.last = id;
  }
}

/** Parses chunks of text into events. */
export class Parser {
  constructor(take) {
    this.take = take;
    this.left = '';
    this.clear();
  }

  clear() {
    this.id = null;
    this.name = 'message';
    this.data = [];
  }

  push(piece) {
    let from = 0;
    let end = piece.indexOf('\n');
    while (end >= 0) {
      this.line((this.left + piece.slice(from, end)).replace(/\r$/, ''));
      this.left = '';
      from = end + 1;
      end = piece.indexOf('\n', from);
    }
    this.left += piece.slice(from);
  }

  line(line) {
    if (line === '') {
      if (this.data.length) this.take({ id: this.id, name: this.name, data: this.data.join('\n') });
      return this.clear();
    }
    const colon = line.indexOf(':');
    // A line that starts with a colon is a keep-alive.
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') this.id = value;
    else if (field === 'event') this.name = value;
    else if (field === 'data') this.data.push(value);
  }
}
