// The choices that the page's address holds, so that a view can be sent: what is shown, chosen, ordered and arranged.
"use strict";

{
  const DEFAULTS = {
    view: "list", // or one, statistics, provenance
    q: "",
    task: "",
    agent: "",
    status: "",
    flag: "",
    column: "",
    value: "",
    only: "", // "disagree" or "failed"
    sort: "set", // or an order's name, or a column's key; "-" before it turns it round
    group: "", // a column's key, or "meta." and the name of a field
    people: "", // "each": a column for each person
    page: "1",
    stimulus: "", // of view "one": its task and id, and whose answer
    of: "",
    nth: "1", // of several stimuli with one id, which two runs may have
    who: "",
    sample: "",
  };
  const LISTS = ["pin", "hide"]; // keys of columns

  const state = { ...DEFAULTS, pin: [], hide: [] };

  /** Take in the choices that the address holds. */
  function read() {
    const fields = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(DEFAULTS)) state[name] = fields.get(name) ?? DEFAULTS[name];
    for (const name of LISTS) state[name] = fields.getAll(name);
  }

  /** Whether the address asks for the first page as it is, however its columns are arranged. */
  function isPlain() {
    read();
    return Object.keys(DEFAULTS).every((name) => state[name] === DEFAULTS[name] || name === "people");
  }

  /** The address with some choices changed. */
  function address(changes) {
    const all = { ...state, ...changes };
    const fields = Object.keys(DEFAULTS)
      .filter((name) => name === "view" || String(all[name]) !== DEFAULTS[name])
      .map((name) => [name, all[name]]);
    const lists = LISTS.flatMap((name) => all[name].map((key) => [name, key]));
    return `#${new URLSearchParams([...fields, ...lists])}`;
  }

  const forList = (changes) => address({ view: "list", stimulus: "", of: "", nth: 1, who: "", sample: "", ...changes });

  Object.assign(Turinglike, { address, forList, isPlain, read, state });
}
