// What of all answers is chosen, and in which order: the choices stand in the address, so that it can be passed on.
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
    sort: "set",
    page: "1",
    stimulus: "", // of view "one": its task and id, and whose answer
    of: "",
    who: "",
    sample: "",
  };
  const CHOICES = ["q", "task", "agent", "status", "flag", "column", "value", "only", "sort"];
  const PEOPLE = "*people"; // instead of an agent's name: everybody
  const DISAGREE = 50; // below this likeness in per cent, answers to a stimulus disagree

  const state = { ...DEFAULTS };
  let latest = null; // what `selection` returned last
  let searched = null;
  let lower = null;

  /** The choices that the address holds. */
  function read() {
    const fields = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(DEFAULTS)) state[name] = fields.get(name) ?? DEFAULTS[name];
  }

  /** The address with some choices changed. */
  function address(changes) {
    const all = { ...state, ...changes };
    const fields = Object.entries(all).filter(([name, value]) => name === "view" || String(value) !== DEFAULTS[name]);
    return `#${new URLSearchParams(fields)}`;
  }

  const forList = (changes) => address({ view: "list", stimulus: "", of: "", who: "", sample: "", ...changes });

  /** The address of a stimulus, or of one answer to it. */
  function forOne(number, { agent = "", sample = "" } = {}) {
    const { stimuli, tasks } = Turinglike.index;
    return address({ view: "one", of: tasks[stimuli.task[number]], stimulus: stimuli.id[number], who: agent, sample });
  }

  /** The numbers of the stimuli that are chosen, in order; how many records; which of a stimulus, at least one. */
  function selection() {
    const key = JSON.stringify(CHOICES.map((name) => state[name]));
    if (latest?.key !== key) latest = { key, ...made() };
    return latest;
  }

  function made() {
    const { stimuli } = Turinglike.index;
    const matches = matcher();
    const numbers = [];
    let records = 0;
    const chosen = (number) => {
      const all = [];
      for (let at = stimuli.first[number]; at < stimuli.first[number + 1]; at += 1)
        if (matches.record(at, number)) all.push(at);
      return all;
    };
    for (let number = 0; number < stimuli.id.length; number += 1) {
      if (!matches.stimulus(number)) continue;
      const amount = chosen(number).length;
      if (amount || matches.empty) numbers.push(number);
      records += amount;
    }
    order(numbers, chosen);
    return { numbers, records, chosen };
  }

  function matcher() {
    const { stimuli, records, tasks, agents, people, flags, meta } = Turinglike.index;
    const task = state.task === "" ? -1 : tasks.indexOf(state.task);
    const names = state.agent === PEOPLE ? people : [state.agent];
    const agent = state.agent === "" ? null : new Set(names.map((name) => agents.indexOf(name)));
    const status = ["ok", "rejected", "failed"].indexOf(state.only === "failed" ? "failed" : state.status);
    const column = state.value === "" ? undefined : meta.find(([name]) => name === state.column);
    const value = column?.[1].indexOf(state.value);
    const flagged = state.flag === "" ? null : flags.map((kinds) => kinds.includes(state.flag));
    const words = search();
    return {
      empty: agent === null && status < 0 && flagged === null && state.q === "",
      stimulus: (number) =>
        (state.task === "" || stimuli.task[number] === task) &&
        (column === undefined || column[2][number] === value) &&
        (state.only !== "disagree" || (stimuli.alike[number] >= 0 && stimuli.alike[number] < DISAGREE)),
      record: (at, number) =>
        (agent === null || agent.has(records.agent[at])) &&
        (status < 0 || records.status[at] === status) &&
        (flagged === null || flagged[records.flags[at]]) &&
        (words === null || words.texts[records.text[at]] === 1 || words.stimuli[number] === 1),
    };
  }

  /** Which answers and which stimuli have every word that is looked for. */
  function search() {
    const { texts, stimuli, meta } = Turinglike.index;
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    if (searched?.q === state.q) return searched;
    lower ??= texts.map((text) => text.toLowerCase());
    const has = (text) => words.every((word) => text.includes(word));
    const about = stimuli.id.map((id, number) => {
      const values = meta.map(([, names, codes]) => (codes[number] < 0 ? "" : names[codes[number]]));
      return [id, stimuli.title[number], ...values].join(" ").toLowerCase();
    });
    searched = { q: state.q, texts: Uint8Array.from(lower, has), stimuli: Uint8Array.from(about, has) };
    return searched;
  }

  function order(numbers, chosen) {
    const { stimuli, records, texts } = Turinglike.index;
    const collator = new Intl.Collator("en", { numeric: true });
    const text = (number) => texts[records.text[chosen(number)[0]]] ?? "\uffff";
    const amount = (number) => chosen(number).reduce((total, at) => total + records.attempts[at], 0);
    const by = (value, compare) => {
      const values = new Map(numbers.map((number) => [number, value(number)]));
      numbers.sort((number, other) => compare(values.get(number), values.get(other)) || number - other);
    };
    const unknown = (number) => (stimuli.alike[number] < 0 ? 1000 : stimuli.alike[number]);
    if (state.sort === "id") by((number) => stimuli.id[number], collator.compare);
    else if (state.sort === "disagreement") by(unknown, (alike, other) => alike - other);
    else if (state.sort === "attempts") by(amount, (attempts, other) => other - attempts);
    else if (state.sort === "answer") by(text, (first, other) => (first < other ? -1 : first > other ? 1 : 0));
  }

  let places = null;
  const forget = () => (latest = searched = lower = places = null);

  /** The number of a stimulus by its task and id; -1 if there is none. */
  function numberOf(task, id) {
    const { stimuli, tasks } = Turinglike.index;
    places ??= new Map(stimuli.id.map((id, number) => [`${tasks[stimuli.task[number]]}\n${id}`, number]));
    return places.get(`${task}\n${id}`) ?? -1;
  }

  Object.assign(Turinglike, { PEOPLE, address, forget, forList, forOne, numberOf, read, selection, state });
}
