// What somebody writes outlives a reload of the page: phones load pages again by themselves. It is kept in the tab, for
// the step that is up, and is gone with the step. What is chosen with one tap is not kept.
"use strict";

{
  const { byId } = Turinglike;
  const KEY = "draft";
  const FIELDS = "textarea[id], input[type=text][id], select[id]";
  let step = null; // the step that is up, by a name that no other step has

  const isKept = () => step !== null && navigator.cookieEnabled; // without cookies a browser refuses storage, too
  const fields = () => [...byId("page").querySelectorAll(FIELDS)];

  function read() {
    const draft = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
    return draft?.step === step ? draft.texts : null;
  }

  /** Keep what the fields of the page hold; nothing is kept of empty ones. */
  function save() {
    if (!isKept()) return;
    const texts = Object.fromEntries(fields().flatMap(({ id, value }) => (value ? [[id, value]] : [])));
    if (Object.keys(texts).length) sessionStorage.setItem(KEY, JSON.stringify({ step, texts }));
    else sessionStorage.removeItem(KEY);
    Turinglike.storeTraces(); // a draft and how it was written come back together, or both are lost
  }

  /** Put what is kept into the fields of the page that are empty. */
  function restore() {
    const texts = isKept() ? read() : null;
    if (texts === null) return;
    for (const field of fields().filter(({ id, value }) => !value && texts[id])) {
      field.value = texts[field.id];
      field.dispatchEvent(new Event("turinglike-restored", { bubbles: true }));
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  /** A step is up: what was written in another one is removed. */
  function begin(name) {
    step = name;
    if (isKept() && read() === null) sessionStorage.removeItem(KEY);
  }

  byId("page").addEventListener("input", save);
  Object.assign(Turinglike, { drafts: { begin, restore, save } });
}
