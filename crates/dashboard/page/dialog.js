// @ts-check
// A change of the rollout: what it would do is asked first and shown; only then it can be confirmed.

import { post } from './api.js';
import { h, text } from './dom.js';

const WORDS = {
  pause: ['Pause', 'Clusters in flight finish; no new ones start until you resume.'],
  resume: ['Resume', 'Clusters start again, as the budget allows.'],
  undo: ['Undo', 'Makes an earlier revision the desired one again, within the same budget.'],
  retry: ['Retry', 'Lets failed clusters try the same revision again. Nothing is deleted or restarted on them.'],
  acknowledge: ['Approve', 'Approves the deletions that the brake holds.'],
};

/**
 * Opens the dialog for an action on an add-on.
 * @param {string} addon
 * @param {string} action
 * @param {{words?: string, placement?: string, toRevision?: number, acknowledge?: string, cluster?: string}} [details] `words` are for the title
 */
export function confirm(addon, action, { words, ...details } = {}) {
  const node = /** @type {HTMLDialogElement} */ (document.getElementById('dialog'));
  const [verb, meaning] = WORDS[action];
  const abort = new AbortController();
  const path = `/api/addons/${encodeURIComponent(addon)}/actions`;
  const send = (dryRun) => post(path, { action, ...details, dryRun }, abort.signal);
  const body = h('div.blast', { 'aria-live': 'polite' }, h('p.soft', {}, 'Checking what this would do…'));
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
