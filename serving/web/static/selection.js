// What of all answers is chosen, and in which order: the choices stand in the address, so that it can be passed on.
"use strict";

{
  const DEFAULTS = {
    view: "statistics", // or list, one, provenance
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
  let found = null; // the selection of `foundFor`
  let foundFor = "";
  let searched = null;
  let lower = null;

  /** The choices that the address holds. */
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(DEFAULTS)) state[name] = given.get(name) ?? DEFAULTS[name];
  }

  /** The address with some choices changed. */
  function address(changes) {
    const all = { ...state, ...changes };
    const given = Object.entries(all).filter(([name, value]) => name === "view" || String(value) !== DEFAULTS[name]);
    return `#${new URLSearchParams(given)}`;
  }

  const forList = (changes) => address({ view: "list", stimulus: "", of: "", who: "", sample: "", ...changes });

  /** The address of a stimulus, or of one answer to it. */
  function forOne(number, { agent = "", sample = "" } = {}) {
    const { stimuli, tasks } = Turinglike.index;
    return address({ view: "one", of: tasks[stimuli.task[number]], stimulus: stimuli.id[number], who: agent, sample });
  }

  /** Which stimuli are chosen, in order, and whether a record is. Of a stimulus at least one record is chosen. */
  function selection() {
    const asked = JSON.stringify(CHOICES.map((name) => state[name]));
    if (found !== null && foundFor === asked) return found;
    const { stimuli, records } = Turinglike.index;
    const matches = matcher();
    const numbers = [];
    let total = 0;
    for (let number = 0; number < stimuli.id.length; number += 1) {
      if (!matches.stimulus(number)) continue;
      let some = 0;
      for (let at = stimuli.first[number]; at < stimuli.first[number + 1]; at += 1) some += matches.record(at, number);
      if (some || matches.empty) numbers.push(number);
      total += some;
    }
    order(numbers, matches);
    foundFor = asked;
    found = { numbers, records: total, matches: (at, number) => matches.record(at, number) };
    return found;
  }

  function matcher() {
    const { stimuli, records, tasks, agents, people, flags, meta } = Turinglike.index;
    const task = state.task === "" ? -1 : tasks.indexOf(state.task);
    const agent = state.agent === "" ? null : agents.indexOf(state.agent);
    const everybody = new Set(people.map((name) => agents.indexOf(name)));
    const status = ["ok", "rejected", "failed"].indexOf(state.only === "failed" ? "failed" : state.status);
    const column = meta.find(([name]) => name === state.column);
    const value = column === undefined || state.value === "" ? -1 : column[1].indexOf(state.value);
    const flagged = state.flag === "" ? null : flags.map((some) => some.includes(state.flag));
    const words = search();
    return {
      empty: agent === null && status < 0 && flagged === null && state.q === "",
      stimulus: (number) =>
        (state.task === "" || stimuli.task[number] === task) &&
        (column === undefined || state.value === "" || column[2][number] === value) &&
        (state.only !== "disagree" || (stimuli.alike[number] >= 0 && stimuli.alike[number] < DISAGREE)),
      record: (at, number) =>
        (agent === null || (state.agent === PEOPLE ? everybody.has(records.agent[at]) : records.agent[at] === agent)) &&
        (status < 0 || records.status[at] === status) &&
        (flagged === null || flagged[records.flags[at]]) &&
        (words === null || words.texts[records.text[at]] === 1 || words.stimuli[number] === 1),
    };
  }

  /** Which answers and which stimuli have every word that is looked for. */
  function search() {
    const { texts, stimuli, meta } = Turinglike.index;
    const words = state.q
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word);
    if (!words.length) return null;
    if (searched?.q === state.q) return searched;
    lower ??= texts.map((text) => text.toLowerCase());
    const has = (text) => words.every((word) => text.includes(word));
    const inTexts = new Uint8Array(texts.length);
    lower.forEach((text, at) => {
      inTexts[at] = has(text) ? 1 : 0;
    });
    const inStimuli = new Uint8Array(stimuli.id.length);
    stimuli.id.forEach((id, number) => {
      const values = meta.map(([, names, codes]) => (codes[number] < 0 ? "" : names[codes[number]]));
      inStimuli[number] = has([id, stimuli.title[number], ...values].join(" ").toLowerCase()) ? 1 : 0;
    });
    searched = { q: state.q, texts: inTexts, stimuli: inStimuli };
    return searched;
  }

  function order(numbers, matches) {
    const { stimuli, records, texts } = Turinglike.index;
    const first = (number) => {
      for (let at = stimuli.first[number]; at < stimuli.first[number + 1]; at += 1)
        if (matches.record(at, number)) return at;
      return -1;
    };
    const attempts = (number) => {
      let sum = 0;
      for (let at = stimuli.first[number]; at < stimuli.first[number + 1]; at += 1)
        if (matches.record(at, number)) sum += records.attempts[at];
      return sum;
    };
    const collator = new Intl.Collator("en", { numeric: true });
    const by = (value, compare) => {
      const values = new Map(numbers.map((number) => [number, value(number)]));
      numbers.sort((one, other) => compare(values.get(one), values.get(other)) || one - other);
    };
    const unknown = (number) => (stimuli.alike[number] < 0 ? 1000 : stimuli.alike[number]);
    if (state.sort === "id") by((number) => stimuli.id[number], collator.compare);
    else if (state.sort === "disagreement") by(unknown, (one, other) => one - other);
    else if (state.sort === "attempts") by(attempts, (one, other) => other - one);
    else if (state.sort === "answer") {
      const text = (number) => (first(number) < 0 ? "\uffff" : texts[records.text[first(number)]]);
      by(text, (one, other) => (one < other ? -1 : one > other ? 1 : 0));
    }
  }

  let places = null;

  /** The number of a stimulus by its task and id; -1 if there is none. */
  function numberOf(task, id) {
    const { stimuli, tasks } = Turinglike.index;
    places ??= new Map(stimuli.id.map((one, number) => [`${tasks[stimuli.task[number]]}\n${one}`, number]));
    return places.get(`${task}\n${id}`) ?? -1;
  }

  Object.assign(Turinglike, { PEOPLE, address, forList, forOne, numberOf, read, selection, state });
}
