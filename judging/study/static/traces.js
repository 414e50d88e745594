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
  const COMPOSING = ["insertCompositionText", "insertFromComposition", "deleteCompositionText", "deleteByComposition"];
  const BY_KEYS = ["insertText", "insertLineBreak", "insertParagraph", ...COMPOSING];

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
    if (!isStored() || !live.size) return;
    const logs = Object.fromEntries([...live].map(([field, log]) => [field, log()]));
    sessionStorage.setItem(KEY, JSON.stringify({ step: stepOf, logs }));
  }
  function forget(field) {
    live.delete(field);
    store();
    if (isStored() && !live.size) sessionStorage.removeItem(KEY);
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
  addEventListener("pagehide", store); // the times away; all else is stored with each draft
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
    ...{ typed: 0, composed_deletions: 0, cut: false, spans: { hidden: [], unfocused: [] } },
  });
  const since = (log, at = performance.now()) =>
    Math.max(0, Math.min(LATEST, Math.round(log.before + at - log.begin)));

  /** When nobody looked, in ms of a log. */
  function spansOf(log, which) {
    const now = performance.now();
    const spans = [...log.spans[which]];
    for (const [from, to = now] of away[which])
      if (to > log.begin) spans.push([since(log, Math.max(from, log.begin)), since(log, to)]);
    return spans;
  }

  /** The log as it is sent, with the characters of the text: no list is longer than the server takes, and `cut` says
   * whether anything is left out. */
  function sent(log, characters) {
    const { typed, composed_deletions } = log;
    let { cut } = log;
    const short = (list, most) => {
      cut ||= list.length > most;
      return list.slice(0, most);
    };
    const inOrder = [...log.inserted].sort((one, other) => one.at - other.at); // a composition is told at its end
    const lists = {
      inserted: short(inOrder, MOST_SPANS),
      keys: short(log.keys, MOST_TIMES),
      deletions: short(log.deletions, MOST_TIMES),
      hidden: short(spansOf(log, "hidden"), MOST_SPANS),
      unfocused: short(spansOf(log, "unfocused"), MOST_SPANS),
    };
    return { ...lists, first_key: log.keys[0] ?? null, typed, composed_deletions, characters, cut };
  }

  /** An earlier log that goes on with a later one. */
  function joined(log, later) {
    const shift = since(log, later.begin) - later.before;
    const shifted = (times) => times.map((time) => time + shift);
    return {
      ...log,
      inserted: [...log.inserted, ...later.inserted.map((each) => ({ ...each, at: each.at + shift }))],
      keys: [...log.keys, ...shifted(later.keys)],
      deletions: [...log.deletions, ...shifted(later.deletions)],
      typed: log.typed + later.typed,
      composed_deletions: log.composed_deletions + later.composed_deletions,
      cut: log.cut || later.cut,
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
    let composition = null; // the field of an open one, when it began, and what was in the field before it
    let own = null; // what was copied, cut or dragged out of these fields
    let brought = null; // what is about to be pasted or dropped
    const held = new WeakMap(); // what each field held before the event, and its selection

    function add(list, value, most) {
      if (list.length < most) list.push(value);
      else log.cut = true;
    }
    const insert = (kind, at, characters) => add(log.inserted, { kind, at, characters }, MOST_SPANS);

    /** A script, or this page, may have written without any event: that is nobody's key. */
    function before({ target }) {
      held.set(target, [target.value, target.selectionStart, target.selectionEnd]);
    }

    /** What the open composition has added so far. `value` is what the field held last: by now it may be empty again,
     * as a place for messages is once one is sent. */
    const addedBy = ({ target, text, added }, [value] = held.get(target)) => added + difference(text, value).added;
    function begins(target, text) {
      ends();
      composition = { target, text, added: 0, at: since(log) };
    }
    /** End the open composition, if there is one: what it added is recorded. */
    function ends() {
      const added = composition ? addedBy(composition) : 0;
      if (added) insert("composition", composition.at, added);
      composition = null;
    }

    function changed(event) {
      const { target, inputType: type = "" } = event;
      const [value, from, to] = held.get(target) ?? [""];
      const isComposed = COMPOSING.includes(type);
      const kind = KINDS[type];
      // Keys and pastes replace the selection. A text is dropped, or corrected, elsewhere.
      const isAtSelection = kind === "paste" || (type === "insertText" && !composition);
      const { added, removed } = difference(value, target.value, ...(isAtSelection ? [from, to] : []));
      held.set(target, [target.value]);
      const at = since(log);
      // An input method may go on after a text was taken, and what comes in meanwhile is no part of what it writes.
      if (isComposed && event.isComposing && !composition && (added || removed)) begins(target, value);
      if (!isComposed && composition?.target === target) {
        composition.added = addedBy(composition, [value]);
        composition.text = target.value;
      }
      if (type.startsWith("delete") && !isComposed) removed && add(log.deletions, at, MOST_TIMES);
      else if (BY_KEYS.includes(type) && added <= ONE_KEY && (added || removed)) {
        add(added ? log.keys : log.deletions, at, MOST_TIMES);
        if (!isComposed) log.typed += added;
        else if (!added) log.composed_deletions += 1;
      } else if (isComposed) return; // its end tells what it added
      else if (type === "") event.isTrusted && insert("autofill", at, added);
      else if (added || kind) insert(isOwn(kind) ? "own" : (kind ?? "other"), at, added);
      else if (removed) add(log.deletions, at, MOST_TIMES);
      if (kind === "paste" || kind === "drop") brought = null;
    }

    /** Whether a paste or a drop brings what was taken out of these fields before. */
    const isOwn = (kind) => ["paste", "drop"].includes(kind) && own !== null && brought === own;
    const plain = (text) => text?.replace(/\r\n?/g, "\n") ?? null;
    function takesOut({ target }) {
      const { value, selectionStart, selectionEnd } = target;
      if (value && selectionEnd > selectionStart) own = plain(value.slice(selectionStart, selectionEnd));
    }
    function brings(event) {
      brought = plain((event.clipboardData ?? event.dataTransfer)?.getData("text/plain"));
    }

    function composes({ target }) {
      before({ target });
      begins(target, target.value);
    }
    function composed({ target }) {
      held.set(target, [target.value]); // in Firefox an event without news follows
      ends();
    }

    /** A draft came back. Where its traces did not, nobody knows any more how it was written. */
    function restored({ target }) {
      held.set(target, [target.value]);
      if (!earlier) insert("restored", since(log), [...target.value].length);
    }

    place.addEventListener("beforeinput", before);
    place.addEventListener("input", changed);
    place.addEventListener("compositionstart", composes);
    place.addEventListener("compositionend", composed);
    for (const name of ["copy", "cut", "dragstart"]) place.addEventListener(name, takesOut);
    for (const name of ["paste", "drop"]) place.addEventListener(name, brings);
    place.addEventListener("turinglike-restored", restored);
    live.set(field, () => {
      const open = composition ? addedBy(composition) : 0;
      const more = open ? [{ kind: "composition", at: composition.at, characters: open }] : [];
      const now = { ...log, inserted: [...log.inserted, ...more] };
      const all = taken ? joined(taken, now) : now;
      const spans = { hidden: spansOf(all, "hidden"), unfocused: spansOf(all, "unfocused") };
      return { ...all, begin: undefined, spans, before: since(all) };
    });

    return {
      /** Times are counted from `at` on, by the browser's clock. */
      begin: (at) => (log.begin = at),
      take(text) {
        ends();
        if (taken) log = joined(taken, log);
        taken = log;
        log = newLog();
        return sent(taken, [...text.split(/\s+/).filter(Boolean).join(" ")].length); // as the server keeps it
      },
      giveBack() {
        ends();
        if (taken) log = joined(taken, log);
        taken = null;
      },
      done: () => (taken = null),
      end: () => forget(field),
    };
  }

  const lineOf = ({ line }) => (line ? Turinglike.el("p.line-of-page", { "aria-hidden": "true", translate: "no" }, line) : "");

  Object.assign(Turinglike, { beginTraces, lineOf, record, storeTraces: store });
}
