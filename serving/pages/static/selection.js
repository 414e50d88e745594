// What of all answers is chosen, and in which order: the choices stand in the address, so that it can be passed on.
"use strict";

{
  const { state, AGREEMENT, PEOPLE, agreementOf, columns, layout, recordsOf, stimuliOf } = Turinglike;
  const CHOICES = ["q", "task", "agent", "status", "flag", "column", "value", "only", "sort", "group", "people"];
  const STATUSES = ["ok", "rejected", "failed"];
  const DISAGREE = 50; // below this likeness in per cent, answers to a stimulus disagree
  const NOTHING = "–"; // the group of rows without the value by which they are grouped

  let latest = null; // what `selection` returned last
  let searched = null;
  let lower = null;
  let names = null;
  const forget = () => {
    latest = searched = lower = names = null;
    Turinglike.forgetRows();
  };

  /** The rows that are chosen, in order, with their groups; how many rows and records; and which records. */
  function selection() {
    const key = JSON.stringify(CHOICES.map((name) => state[name]));
    if (latest?.key !== key) latest = { key, ...made() };
    return latest;
  }

  function made() {
    const { size, stimuli, rows } = Turinglike.index;
    const { first, of } = layout();
    const matches = matcher();
    const chosen = [];
    let records = 0;
    const isWhole = matches.all && state.task === "" && state.value === "";
    for (let row = 0; row < rows.length; row += 1) {
      if (isWhole) {
        chosen.push(row);
        continue;
      }
      let isChosen = false;
      for (let place = first[row]; place < first[row + 1]; place += 1) {
        const number = of[place];
        if (!matches.stimulus(number)) continue;
        isChosen ||= matches.empty;
        for (let at = stimuli.first[number]; at < stimuli.first[number + 1]; at += 1) {
          if (!matches.record(at, number)) continue;
          isChosen = true;
          records += 1;
        }
      }
      if (isChosen) chosen.push(row);
    }
    sort(chosen);
    const groups = grouped(chosen);
    const isHit = (at, number) => !matches.all && matches.stimulus(number) && matches.record(at, number);
    const inOrder = groups?.flatMap((group) => group.rows) ?? chosen;
    if (isWhole) records = Turinglike.index.records.agent.length;
    const [all, answers] = size ?? [inOrder.length, records]; // more than the first rows, which are all that is here
    return { rows: inOrder, all, groups, records: answers, isHit };
  }

  function matcher() {
    const { stimuli, records, tasks, agents, people, flags, meta } = Turinglike.index;
    const task = state.task === "" ? -1 : tasks.indexOf(state.task);
    const wanted = state.agent === PEOPLE ? people : [state.agent];
    const agent = state.agent === "" ? null : new Set(wanted.map((name) => agents.indexOf(name)));
    const status = STATUSES.indexOf(state.only === "failed" ? "failed" : state.status);
    const column = state.value === "" ? undefined : meta.find(([name]) => name === state.column);
    const value = column?.[1].indexOf(state.value);
    const flagged = state.flag === "" ? null : flags.map((kinds) => kinds.includes(state.flag));
    const words = search();
    const isOfAnswers = agent !== null || status >= 0 || flagged !== null || words !== null;
    return {
      empty: !isOfAnswers, // a row without answers counts too
      all: !isOfAnswers && state.only === "",
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
    const { texts, stimuli } = Turinglike.index;
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    if (searched?.q === state.q) return searched;
    lower ??= { texts: texts.map((text) => text.toLowerCase()), stimuli: stimuli.id.map(described) };
    const has = (text) => words.every((word) => text.includes(word));
    searched = { q: state.q, texts: Uint8Array.from(lower.texts, has), stimuli: Uint8Array.from(lower.stimuli, has) };
    return searched;
  }

  /** What is said of a stimulus itself: its names, its cue, its fields. */
  function described(id, number) {
    const { stimuli, meta, rows } = Turinglike.index;
    let text = `${id} ${rows[stimuli.row[number]]} ${stimuli.title[number]}`;
    for (const [, values, codes] of meta) if (codes[number] >= 0) text += ` ${values[codes[number]]}`;
    return text.toLowerCase();
  }

  /** Put rows in order. Rows that lack what they are ordered by come last, whichever the direction. */
  function sort(rows) {
    const isReversed = state.sort.startsWith("-");
    const value = orders()[isReversed ? state.sort.slice(1) : state.sort] ?? byColumn(state.sort.replace(/^-/, ""));
    if (value === undefined) return;
    const values = new Float64Array(Turinglike.index.rows.length);
    const sign = isReversed ? -1 : 1;
    for (const row of rows) {
      const found = value(row, rows);
      values[row] = found === null ? Number.POSITIVE_INFINITY : sign * found;
    }
    rows.sort((row, other) => (values[row] === values[other] ? row - other : values[row] - values[other]));
  }

  /** A row's place in the orders that have a name; null where it has none. */
  function orders() {
    const { rows } = Turinglike.index;
    const known = (value) => (value < 0 ? null : value);
    return {
      set: (row) => row,
      name: (row) => {
        names ??= ranks(rows, new Intl.Collator("en", { numeric: true }).compare);
        return names[row];
      },
      disagreement: (row) => known(agreementOf(row)),
      flags: (row) => -flagsOf(row),
      attempts: (row) => -sumOf(row, attemptsOf),
    };
  }

  /** The place of each text among all of them. */
  function ranks(texts, compare) {
    const order = texts.map((_, number) => number).sort((one, other) => compare(texts[one], texts[other]));
    const places = new Uint32Array(texts.length);
    order.forEach((number, place) => (places[number] = place));
    return places;
  }

  /** A row's place by its answers in a column: words by the alphabet, paths by their length. */
  function byColumn(key) {
    const column = columns().find((one) => one.key === key);
    if (column === undefined) return undefined;
    if (column.who === AGREEMENT)
      return (row) => {
        const agreement = agreementOf(row, column.number);
        return agreement < 0 ? null : agreement;
      };
    const { texts } = Turinglike.index;
    if (column.task === "attention_prediction")
      return (row) => {
        const text = firstText(row, column);
        return text < 0 ? null : Number.parseInt(texts[text], 10);
      };
    let rank = null;
    return (row, rows) => {
      rank ??= rankOf([...new Set(rows.map((one) => firstText(one, column)))]);
      return rank.get(firstText(row, column)) ?? null;
    };
  }

  function rankOf(numbers) {
    const { texts } = Turinglike.index;
    const used = numbers.filter((number) => number >= 0);
    const compare = (one, other) => (texts[one] < texts[other] ? -1 : 1);
    return new Map(used.sort(compare).map((number, place) => [number, place]));
  }

  /** The number of the text of a row's first answer in a column, of people the one that most gave; -1 without any. */
  function firstText(row, column) {
    const { text } = Turinglike.index.records;
    const found = recordsOf(row, column);
    if (column.label !== -1 || found.length < 3) return found.length ? text[found[0].at] : -1;
    const times = new Map();
    for (const { at } of found) times.set(text[at], (times.get(text[at]) ?? 0) + 1);
    return [...times].reduce((most, entry) => (entry[1] > most[1] ? entry : most))[0];
  }

  function sumOf(row, value) {
    const { first: records } = Turinglike.index.stimuli;
    const { first, of } = layout();
    let sum = 0;
    for (let place = first[row]; place < first[row + 1]; place += 1)
      for (let at = records[of[place]]; at < records[of[place] + 1]; at += 1) sum += value(at);
    return sum;
  }

  const attemptsOf = (at) => Turinglike.index.records.attempts[at];

  function isFlagged(at) {
    const { flags, records } = Turinglike.index;
    return records.status[at] > 0 || flags[records.flags[at]].length > 0 ? 1 : 0;
  }

  /** How many of a row's answers have a flag, were rejected, or failed. */
  const flagsOf = (row) => sumOf(row, isFlagged);

  /** The rows apart by what they have in the column or field `state.group`, the largest group first; null if they are
   * not to be grouped. */
  function grouped(rows) {
    const value = state.group === "" ? undefined : (ofField(state.group) ?? ofAnswer(state.group));
    if (value === undefined) return null;
    const groups = new Map();
    for (const row of rows) {
      const name = value(row) ?? NOTHING;
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(row);
    }
    return [...groups]
      .map(([name, members]) => ({ name, rows: members }))
      .sort((one, other) => other.rows.length - one.rows.length || (one.name < other.name ? -1 : 1));
  }

  function ofField(key) {
    const field = Turinglike.index.meta.find(([name]) => `meta.${name}` === key);
    if (field === undefined) return undefined;
    const [, values, codes] = field;
    return (row) => values[codes[stimuliOf(row).find((number) => codes[number] >= 0)]];
  }

  function ofAnswer(key) {
    const column = columns().find((one) => one.key === key && one.label !== null);
    return column && ((row) => Turinglike.index.texts[firstText(row, column)]);
  }

  Object.assign(Turinglike, { STATUSES, flagsOf, forget, selection });
}
