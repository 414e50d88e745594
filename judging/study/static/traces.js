// What is recorded of how somebody writes, where they have agreed to it: times and numbers, and never what a key wrote.
// Nothing is sent while somebody writes: the record goes with the answer. A reload of the page does not lose it.
"use strict";

{
  const MOST_TIMES = 5000; // of keys and of deletions; the server takes no more
  const MOST_SPANS = 500; // of texts that came in at once, and of times away
  const LATEST = 86_400_000; // ms: a day
  const ONE_KEY = 2; // characters that a single key writes at most; some scripts have keys for two
  const KEY = "traces";

  // How text came in, by the event's inputType (W3C, Input Events Level 2). What has no line here is "other".
  const KINDS = {
    insertFromPaste: "paste",
    insertFromPasteAsQuotation: "paste",
    insertFromYank: "paste",
    insertFromDrop: "drop",
    insertReplacementText: "autofill",
    insertCompositionText: "composition",
    insertFromComposition: "composition",
  };
  const BY_KEYS = ["insertText", "insertLineBreak", "insertParagraph", "insertCompositionText", "insertFromComposition"];

  // when nobody looks: spans of ms by the browser's clock; the last has no end while it lasts
  const away = { hidden: [], unfocused: [] };

  function noteAway(which, isAway) {
    const spans = away[which];
    const isOpen = spans.length > 0 && spans.at(-1).length === 1;
    if (isAway && !isOpen) spans.push([performance.now()]);
    if (!isAway && isOpen) spans.at(-1).push(performance.now());
  }
  const look = () => {
    noteAway("hidden", document.hidden);
    noteAway("unfocused", document.hidden || !document.hasFocus());
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("blur", () => noteAway("unfocused", true));
  addEventListener("focus", look);
  look();

  const live = new Map(); // what is recorded now: by field, what gives its log for storage
  let stepOf = null; // the step whose fields these are, by a name that no other step has

  const isStored = () => navigator.cookieEnabled; // without cookies a browser refuses storage, too
  function store() {
    if (!isStored()) return;
    const logs = Object.fromEntries([...live].map(([field, log]) => [field, log()]));
    if (live.size) sessionStorage.setItem(KEY, JSON.stringify({ step: stepOf, logs }));
    else sessionStorage.removeItem(KEY);
  }
  /** A step is up: what was recorded in another one is removed. */
  function beginTraces(step) {
    if (stepOf !== step) live.clear();
    stepOf = step;
    if (isStored() && JSON.parse(sessionStorage.getItem(KEY) ?? "null")?.step !== step) sessionStorage.removeItem(KEY);
  }
  function stored(field) {
    const kept = isStored() ? JSON.parse(sessionStorage.getItem(KEY) ?? "null") : null;
    return kept?.logs[field];
  }
  addEventListener("pagehide", store);
  document.addEventListener("visibilitychange", () => document.hidden && store());

  /** How many characters a change added and removed; what stands before `from` and from `to` on was not touched. */
  function difference(before, after, from = before.length, to = 0) {
    const most = Math.min(before.length, after.length);
    let start = 0;
    while (start < Math.min(most, from) && before[start] === after[start]) start += 1;
    let end = 0;
    const last = Math.min(most - start, before.length - to);
    while (end < last && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
    const between = (text) => [...text.slice(start, text.length - end)].length;
    return { added: between(after), removed: between(before) };
  }

  /** An empty log, which begins now. `before` are ms of an earlier load of the page, `spans` the times away then. */
  const newLog = () => ({
    ...{ begin: performance.now(), before: 0, inserted: [], keys: [], deletions: [] },
    spans: { hidden: [], unfocused: [] },
  });
  const since = (log, at = performance.now()) =>
    Math.max(0, Math.min(LATEST, Math.round(log.before + at - log.begin)));

  /** When nobody looked, in ms of a log. */
  function spansOf(log, which) {
    const now = performance.now();
    const spans = [...log.spans[which]];
    for (const [from, to = now] of away[which])
      if (to > log.begin) spans.push([since(log, Math.max(from, log.begin)), since(log, to)]);
    return spans.slice(0, MOST_SPANS);
  }

  /** The log as it is sent, with the characters of the text. */
  const sent = (log, characters) => ({
    inserted: log.inserted.toSorted((one, other) => one.at - other.at), // a composition is told at its end
    ...{ keys: log.keys, deletions: log.deletions },
    ...{ hidden: spansOf(log, "hidden"), unfocused: spansOf(log, "unfocused") },
    ...{ first_key: log.keys[0] ?? null, characters },
  });

  /** An earlier log that goes on with a later one. */
  function joined(log, later) {
    const shift = since(log, later.begin) - later.before;
    const shifted = (times) => times.map((time) => time + shift);
    return {
      ...log,
      inserted: [...log.inserted, ...later.inserted.map((each) => ({ ...each, at: each.at + shift }))],
      keys: [...log.keys, ...shifted(later.keys)],
      deletions: [...log.deletions, ...shifted(later.deletions)],
    };
  }

  const NOTHING = { begin() {}, take() {}, giveBack() {}, done() {}, end() {} };

  /** Record how the fields within `place` are written in, if `view` says so. `field` names them across a reload.
   *
   * `take` gives what is to be sent with a text, and begins anew for the next one; `giveBack` goes on as if it had not,
   * where the server refuses the text; `done` tells that the server has it. `end` ends all.
   */
  function record(view, place, field = "answer") {
    if (!view.traces) return NOTHING;
    const earlier = stored(field);
    let log = earlier ? { ...newLog(), ...earlier } : newLog();
    let taken = null; // the log of a text that is on its way
    let composition = null; // what the field held when one began, and when that was
    const held = new WeakMap(); // what each field held before the event, and its selection

    const add = (list, value, most) => list.length < most && list.push(value);
    const insert = (kind, at, characters) => add(log.inserted, { kind, at, characters }, MOST_SPANS);

    /** A script, or this page, may have written without any event: that is nobody's key. */
    function before({ target }) {
      held.set(target, [target.value, target.selectionStart, target.selectionEnd]);
    }

    function changed(event) {
      const { target, inputType: type = "" } = event;
      const [value, from, to] = held.get(target) ?? [""];
      // Keys and pastes replace the selection. A text is dropped, or corrected, elsewhere.
      const isAtSelection = !composition && (type === "insertText" || KINDS[type] === "paste");
      const { added, removed } = difference(value, target.value, ...(isAtSelection ? [from, to] : []));
      held.set(target, [target.value]);
      const at = since(log);
      if (type.startsWith("delete")) removed && add(log.deletions, at, MOST_TIMES);
      else if (BY_KEYS.includes(type) && added <= ONE_KEY && (added || removed)) {
        add(added ? log.keys : log.deletions, at, MOST_TIMES);
      } else if (composition) return; // its end tells what it added
      else if (type === "") event.isTrusted && insert("autofill", at, added);
      else if (added || KINDS[type]) insert(KINDS[type] ?? "other", at, added);
      else if (removed) add(log.deletions, at, MOST_TIMES);
    }

    function composes({ target }) {
      composition = { text: target.value, at: since(log) };
    }
    function composed({ target }) {
      const { added } = difference(composition?.text ?? target.value, target.value);
      if (added) insert("composition", composition.at, added);
      composition = null;
      held.set(target, [target.value]); // in Firefox an event without news follows
    }

    place.addEventListener("beforeinput", before);
    place.addEventListener("input", changed);
    place.addEventListener("compositionstart", composes);
    place.addEventListener("compositionend", composed);
    live.set(field, () => {
      const all = taken ? joined(taken, log) : log;
      const { inserted, keys, deletions } = all;
      const spans = { hidden: spansOf(all, "hidden"), unfocused: spansOf(all, "unfocused") };
      return { inserted, keys, deletions, spans, before: since(all) };
    });

    return {
      /** Times are counted from `at` on, by the browser's clock. */
      begin: (at) => (log.begin = at),
      take(text) {
        if (taken) log = joined(taken, log);
        taken = log;
        log = newLog();
        return sent(taken, [...text].length);
      },
      giveBack() {
        if (taken) log = joined(taken, log);
        taken = null;
      },
      done: () => (taken = null),
      end() {
        live.delete(field);
        store();
      },
    };
  }

  /** An instruction that nobody sees or hears, and that is there when the whole page is copied. */
  const unseen = ({ codeword }, phrase) =>
    codeword ? Turinglike.el("p.unseen", { "aria-hidden": "true" }, phrase("copied_instruction", { codeword })) : "";

  Object.assign(Turinglike, { beginTraces, record, unseen });
}
