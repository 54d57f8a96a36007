// A change of the rollout: what it would do is asked first and shown; only then it can be confirmed.

import { post } from './api.js';
import { h, text } from './dom.js';

const WORDS = {
  pause: ['Pause', 'Clusters that have started finish; no other starts until it is resumed.'],
  resume: ['Resume', 'Clusters start again, as the budget allows.'],
  undo: ['Undo', 'Goes back to what was wanted before, under the same budget and gates.'],
  acknowledge: ['Acknowledge', 'Lets the deletions that the brake holds go ahead.'],
};

/** Opens the dialog for an action on an add-on. `details` may have `placement`, `toRevision` and `words` for the title. */
export function confirm(addon, action, { words, ...details } = {}) {
  const node = document.getElementById('dialog');
  const [verb, meaning] = WORDS[action];
  const abort = new AbortController();
  const path = `/api/addons/${encodeURIComponent(addon)}/actions`;
  const send = (dryRun) => post(path, { action, ...details, dryRun }, abort.signal);
  const body = h('div.blast', { 'aria-live': 'polite' }, h('p.soft', {}, 'Working out what it would do…'));
  const go = h('button.primary', { type: 'submit', disabled: true }, verb);
  const cancel = h('button', { type: 'button', click: () => node.close() }, 'Cancel');
  const title = h('h2', { id: 'dialog-title' }, `${verb} ${words ?? details.placement ?? addon}?`);
  const tell = (error) => body.replaceChildren(h('p.error', { role: 'alert' }, error.message));
  const submit = async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    text(go, 'Sending…');
    try {
      await send(false);
      node.close();
    } catch (error) {
      if (abort.signal.aborted) return;
      tell(error);
      text(go, verb);
    }
  };
  node.replaceChildren(h('form', { submit }, title, h('p.soft', {}, meaning), body, h('div.buttons', {}, cancel, go)));
  node.addEventListener('close', () => abort.abort(), { once: true });
  node.showModal();
  cancel.focus();
  send(true).then(
    ({ blast, lines }) => {
      body.replaceChildren(h('p.blast-words', {}, blast), lines?.length ? h('ul', {}, ...lines.map((line) => h('li', {}, line))) : '');
      go.disabled = false;
    },
    (error) => {
      if (!abort.signal.aborted) tell(error);
    },
  );
}
