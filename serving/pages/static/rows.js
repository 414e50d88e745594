// Rows and columns of the grid: a row is a picture, cue or talk, a column an agent's answers to a task, or people's.
"use strict";

{
  const { address, state } = Turinglike;
  const PEOPLE = "*people"; // instead of an agent's name: everybody
  const AGREEMENT = "*agreement"; // instead of an agent's name: how alike the answers to the task are
  const KINDS = { word_association: "cue", conversation: "talk", judgement: "trial" }; // others are about a picture
  let latest = null;
  let arranged = null;
  const forgetRows = () => (latest = arranged = null);

  /** What stands where in the index: made once for each index. */
  function layout() {
    latest ??= made();
    return latest;
  }

  function made() {
    const { agents, people, rows, stimuli, tasks } = Turinglike.index;
    const size = rows.length;
    const first = new Uint32Array(size + 1); // of a row's stimuli in `of`
    for (const row of stimuli.row) first[row + 1] += 1;
    for (let row = 0; row < size; row += 1) first[row + 1] += first[row];
    const next = first.slice();
    const of = new Uint32Array(stimuli.row.length);
    stimuli.row.forEach((row, number) => (of[next[row]++] = number));
    const persons = new Set(people);
    const isPerson = Uint8Array.from(agents, (name) => persons.has(name));
    const agreeing = new Set(stimuli.task.filter((_, number) => stimuli.alike[number] >= 0));
    return { first, of, isPerson, agreeing, byTask: tasks.map((task) => answering(task)), each: null, places: null };
  }

  /** The machines that answer a task, and whether people do. */
  function answering(task) {
    const { agents, counts } = Turinglike.index;
    const found = counts.filter(([, of]) => of === task);
    const machines = found.filter(([, , kind]) => kind !== "human").map(([who]) => agents.indexOf(who));
    return { machines, people: found.some(([, , kind]) => kind === "human") };
  }

  /** The labels of the people who answer each task. */
  function participants() {
    const { stimuli, records, people, agents, tasks } = Turinglike.index;
    const { isPerson } = layout();
    if (latest.each !== null) return latest.each;
    const found = tasks.map(() => new Set());
    for (let number = 0; number < stimuli.task.length; number += 1)
      for (let at = stimuli.first[number]; at < stimuli.first[number + 1]; at += 1)
        if (isPerson[records.agent[at]]) found[stimuli.task[number]].add(records.agent[at]);
    const inOrder = people.map((name) => agents.indexOf(name));
    latest.each = found.map((labels) => inOrder.filter((label) => labels.has(label)));
    return latest.each;
  }

  /** All columns, task by task: how alike the answers are, machines, people. `label` is an agent's number, -1 for all
   * people together, null for a column of agreement. */
  function columns() {
    const key = `${state.people}\n${state.task}`;
    if (arranged?.key === key) return arranged.columns;
    const { tasks, agents } = Turinglike.index;
    const { agreeing, byTask } = layout();
    const all = tasks.flatMap((task, number) => {
      if (state.task !== "" && state.task !== task) return [];
      const column = (who, label) => ({ key: `${task}/${who}`, task, number, who, label });
      const { machines, people } = byTask[number];
      const persons = state.people === "each" ? participants()[number] : people ? [-1] : [];
      return [
        ...(agreeing.has(number) ? [column(AGREEMENT, null)] : []),
        ...machines.map((label) => column(agents[label], label)),
        ...persons.map((label) => column(label < 0 ? PEOPLE : agents[label], label)),
      ];
    });
    arranged = { key, columns: all };
    return all;
  }

  /** The columns that are shown for some rows, the pinned ones first: those of the tasks that the rows have. */
  function shownColumns(rows) {
    const { task } = Turinglike.index.stimuli;
    const here = new Set(rows.flatMap((row) => [...stimuliOf(row)].map((number) => task[number])));
    const shown = columns().filter(({ key, number }) => here.has(number) && !state.hide.includes(key));
    const isPinned = ({ key }) => state.pin.includes(key);
    return { pinned: shown.filter(isPinned), others: shown.filter((column) => !isPinned(column)) };
  }

  /** The stimuli of a row, by number; those of one task, if it is given. */
  function stimuliOf(row, task = null) {
    const { first, of } = layout();
    const all = of.subarray(first[row], first[row + 1]);
    return task === null ? all : all.filter((number) => Turinglike.index.stimuli.task[number] === task);
  }

  /** The records of a row in a column, each with its stimulus. */
  function recordsOf(row, { number: task, label }) {
    const { stimuli, records } = Turinglike.index;
    const { first, of, isPerson } = layout();
    const found = [];
    for (let place = first[row]; place < first[row + 1]; place += 1) {
      const stimulus = of[place];
      if (stimuli.task[stimulus] !== task) continue;
      for (let at = stimuli.first[stimulus]; at < stimuli.first[stimulus + 1]; at += 1) {
        const agent = records.agent[at];
        if (agent === label || (label === -1 && isPerson[agent] === 1)) found.push({ at, stimulus });
      }
    }
    return found;
  }

  /** What a row is about. */
  function kindOfRow(row) {
    const { stimuli, tasks } = Turinglike.index;
    return KINDS[tasks[stimuli.task[stimuliOf(row)[0]]]] ?? "picture";
  }

  /** What the rows are about; "stimulus" where they differ. */
  function kindOfRows() {
    const kinds = new Set(Turinglike.index.tasks.map((task) => KINDS[task] ?? "picture"));
    return kinds.size === 1 ? [...kinds][0] : "stimulus";
  }

  /** The picture of a row, if it has one. */
  function pictureOf(row) {
    const { picture } = Turinglike.index.stimuli;
    const number = stimuliOf(row).find((stimulus) => picture[stimulus] >= 0);
    return number === undefined ? null : Turinglike.picture(picture[number]);
  }

  /** How alike the answers of a row are in per cent, at its task with the most disagreement; -1 where none is known. */
  function agreementOf(row, task = null) {
    const { alike, task: tasks } = Turinglike.index.stimuli;
    const { first, of } = layout();
    let least = -1;
    for (let place = first[row]; place < first[row + 1]; place += 1) {
      const number = of[place];
      if (task !== null && tasks[number] !== task) continue;
      if (alike[number] >= 0 && (least < 0 || alike[number] < least)) least = alike[number];
    }
    return least;
  }

  /** The numbers of the stimuli by task and id. */
  function places() {
    const { stimuli, tasks } = Turinglike.index;
    if (layout().places === null) {
      latest.places = tasks.map(() => new Map());
      stimuli.id.forEach((id, number) => {
        const of = latest.places[stimuli.task[number]];
        of.set(id, of.has(id) ? [of.get(id), number].flat() : number);
      });
    }
    return latest.places;
  }

  /** The number of the stimulus of which the address tells the task, the id, and which one of that id; -1 for none. */
  function numberOf({ of, stimulus, nth }) {
    const found = [places()[Turinglike.index.tasks.indexOf(of)]?.get(stimulus) ?? []].flat();
    return found[Number(nth) - 1] ?? -1;
  }

  /** The address of a stimulus, or of one answer to it. */
  function forOne(number, { agent = "", sample = "" } = {}) {
    const { stimuli, tasks } = Turinglike.index;
    const task = stimuli.task[number];
    const id = stimuli.id[number];
    const nth = [places()[task].get(id)].flat().indexOf(number) + 1;
    return address({ view: "one", of: tasks[task], stimulus: id, nth, who: agent, sample });
  }

  Object.assign(Turinglike, { AGREEMENT, PEOPLE, agreementOf, columns, forOne, forgetRows, layout, numberOf });
  Object.assign(Turinglike, { kindOfRow, kindOfRows });
  Object.assign(Turinglike, { pictureOf, recordsOf, shownColumns, stimuliOf });
}
