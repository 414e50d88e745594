// One stimulus: what was asked, and the answers of agents and people side by side.
"use strict";

{
  const { answer, boxes, chat, colourOf, paths, recorded, swatchOf, TASKS } = Turinglike;
  const { byId, count, el, folded, note, pairs, quiet, quote, small, step } = Turinglike;
  const { forOne, forRow, lazily, numberOf, picture, selection, state, stimuliOf, stimulus, taskOf } = Turinglike;
  const SHOWN = 24; // cards of one side, until the others are asked for
  const OWN = ["id", "task", "image", "meta", "history", "target_box"]; // fields that are shown in another way

  let asked = 0;
  let latest = "";

  async function one() {
    const turn = (asked += 1);
    const number = numberOf(state);
    const section = byId("one");
    if (number < 0) {
      latest = section.replaceChildren(note("There is no such stimulus here."));
      return;
    }
    const { row, lines, byRules } = await stimulus(number);
    if (turn !== asked) return; // somebody has gone on meanwhile
    const drawn = [location.hash, ...lines].join("\n");
    if (drawn === latest) return; // what is folded out stays so
    latest = drawn;
    const { index } = Turinglike;
    const task = index.tasks[index.stimuli.task[number]];
    const first = index.stimuli.first[number];
    const answers = lines.map((line, nth) => {
      const record = JSON.parse(line);
      if (byRules[nth] !== null) record.answer.by_rules = byRules[nth];
      const agent = index.agents[index.records.agent[first + nth]];
      return { record, line, name: record.sample > 0 ? `${agent} (sample ${record.sample})` : agent, agent };
    });
    const seen = picture(index.stimuli.picture[number]);
    const shown = together(task, answers, row, seen);
    const others = [about(row), sides(task, answers, row)];
    const isWide = seen === null || shown.querySelector("figcaption") !== null; // alone, or with controls
    const parts = isWide ? el("div.asked", shown, others) : el("div.asked.pictured", shown, el("div", others));
    section.replaceChildren(head(number, task), parts);
    mark(section);
  }

  function head(number, task) {
    const { stimuli } = Turinglike.index;
    const { rows } = selection();
    const row = stimuli.row[number];
    const at = rows.indexOf(row);
    const to = (other, text, label, side) =>
      step(other === undefined ? null : forOne(inTask(other, number)), text, {
        class: `button quiet ${side}`,
        "aria-label": label,
      });
    return el(
      "div.line",
      el("a.button.quiet.back", { href: forRow(at) }, "List"),
      to(rows[at - 1], "‹", "The one before", "before"),
      to(at < 0 ? undefined : rows[at + 1], "›", "The next one", "next"),
      el("h2", quote(stimuli.id[number]), " ", small(TASKS[task] ?? task)),
      at >= 0 && small(`${(at + 1).toLocaleString("en")} of ${rows.length.toLocaleString("en")}`),
      otherTasks(row, number),
    );
  }

  /** The stimulus of a row that asks the same task as another one, or the first. */
  function inTask(row, number) {
    const { task } = Turinglike.index.stimuli;
    const of = stimuliOf(row);
    return of.find((other) => task[other] === task[number]) ?? of[0];
  }

  /** Links to what else was asked about the same picture. */
  function otherTasks(row, number) {
    const { stimuli, tasks } = Turinglike.index;
    const of = [...stimuliOf(row)];
    if (of.length < 2) return null;
    const link = (other) => {
      const task = stimuli.task[other];
      const isAlone = of.filter((one) => stimuli.task[one] === task).length === 1; // else runs have other names for it
      const name = [taskOf(tasks[task]), !isAlone && [" ", quote(stimuli.id[other])]];
      return el("a", { href: forOne(other), "aria-current": other === number ? "page" : null }, name);
    };
    return el("nav.tabs", { "aria-label": "Tasks of this stimulus" }, of.map(link));
  }

  function about(row) {
    const fields = Object.entries({ ...row, ...(isObject(row.meta) ? row.meta : {}) });
    const text = (value) => quote(typeof value === "string" ? value : JSON.stringify(value));
    const rows = fields
      .filter(([name, value]) => !OWN.includes(name) && value !== null && value !== "")
      .map(([name, value]) => [name.replaceAll("_", " "), text(value)]);
    const history = Array.isArray(row.history) ? row.history.filter(isObject) : [];
    return el(
      "div.about",
      typeof row.cue === "string" && el("p.word", el("strong", quote(row.cue))),
      rows.length > 0 && pairs(rows.slice(0, 40)),
      history.length > 0 && folded(`${count(history.length, "message")} before`, chat(history)),
      typeof row.image === "string" && el("p.small", quote(row.image)),
    );
  }

  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  /** The picture with everybody's answers on it, or alone; what people said most. */
  function together(task, answers, row, seen) {
    const stands = answers.filter(({ record }) => record.status !== "failed" && isObject(record.answer));
    let machines = 0;
    const layers = stands
      .filter(({ record }) => wellFormed(task, record.answer))
      .map(({ record: { kind, sample, answer: drawable }, name }) => {
        const colour = colourOf(kind === "human" ? 0 : machines++, kind);
        return { label: name, kind, sample, answer: drawable, colour };
      });
    const drawn = { attention_prediction: paths, object_detection: boxes }[task]?.(layers, row, seen);
    const alone = () => el("img", { src: seen.url, alt: `The picture ${seen.name}`, error: unshown });
    return el(
      "div.together",
      seen?.trouble && el("div.box-notice", "The picture cannot be shown: ", quote(seen.trouble)),
      seen?.changed && el("div.box-notice", "The file has changed since it was answered."),
      drawn ?? (seen?.url && el("figure.overlay", alone())),
      seen?.width > 0 && note(`${seen.width} × ${seen.height} pixels`),
      tally(task, stands),
    );
  }

  const unshown = (event) => event.target.replaceWith(note("The picture cannot be shown."));

  /** Whether a value is a list of lists of so many numbers. */
  const isTable = (value, size) =>
    Array.isArray(value) && value.every((row) => row?.length === size && row.every(Number.isFinite));

  function wellFormed(task, { fixations, frame, labels, boxes: all }) {
    if (task === "attention_prediction") return isTable(fixations, 2) && isTable([frame], 2);
    return Array.isArray(labels) && isTable(all ?? [], 4);
  }

  /** Words that several gave, with who gave them; of people how many. */
  function tally(task, stands) {
    const word = { color_estimation: "color", word_association: "word", judgement: "verdict" }[task];
    if (word === undefined || stands.length < 3) return null;
    const entries = new Map();
    for (const { record, name } of stands) {
      const byRules = record.answer.by_rules;
      const written = String(record.answer[word]).toLowerCase();
      const text = byRules === undefined ? written : (byRules.word ?? `${written} (left out: ${byRules.rule})`);
      if (!entries.has(text)) entries.set(text, { text, people: 0, agents: [] });
      if (record.kind === "human") entries.get(text).people += 1;
      else entries.get(text).agents.push(name);
    }
    const people = stands.filter(({ record }) => record.kind === "human").length;
    const share = (entry) => (people ? entry.people / people : entry.agents.length / stands.length);
    const row = (entry) => {
      const length = el("span.length", { "aria-hidden": "true" });
      length.style.width = `${(100 * share(entry)).toFixed(1)}%`;
      const persons = people > 0 && ` ${count(entry.people, "person", "people")}`;
      const agents = entry.agents.length > 0 && [" ", small(quote(entry.agents.join(", ")))];
      return el("li", length, swatchOf(task, entry.text), el("strong", quote(entry.text)), persons, agents);
    };
    const inOrder = [...entries.values()].sort(
      (entry, other) => other.people - entry.people || other.agents.length - entry.agents.length,
    );
    const title = people ? "Words of people, and whose else" : "Words";
    return [el("h3", title), el("ul.tally", inOrder.slice(0, 15).map(row))];
  }

  /** Cards of machines on one side, of people on the other. */
  function sides(task, answers, row) {
    const card = ({ record, line, agent }) => {
      const { sample } = record;
      const shown = answer(record, row, null, agent);
      Object.assign(shown.dataset, { agent, sample });
      const href = forOne(numberOf(state), { agent, sample });
      const whole = lazily("Record", () => recorded(record, line));
      shown.lastChild.append(el("a", { href }, "Link to this answer"), whole);
      return shown;
    };
    const side = (title, listed) => {
      const wanted = listed.findIndex(({ agent, record }) => isWanted(agent, record.sample));
      const first = Math.max(SHOWN, wanted + 1);
      const rest = listed.slice(first);
      const cards = el(task === "conversation" ? "div.cards.two" : "div.cards", listed.slice(0, first).map(card));
      const more = quiet(`Show ${count(rest.length, "more answer")}`, () => {
        cards.append(...rest.map(card));
        more.remove();
      });
      const head = el("h3", title, " ", small(listed.length));
      return el("section", { "aria-label": title }, head, cards, rest.length > 0 && more);
    };
    const people = answers.filter(({ record }) => record.kind === "human");
    const machines = answers.filter(({ record }) => record.kind !== "human");
    if (people.length && machines.length)
      return el("div.sides.several", side("Agents", machines), side("People", people));
    if (!answers.length) return note("Nobody has answered yet.");
    return el("div.sides", people.length ? side("People", people) : side("Agents", machines));
  }

  const isWanted = (agent, sample) => agent === state.who && (state.sample === "" || String(sample) === state.sample);

  /** Show the answer that the address names. */
  function mark(section) {
    const wanted = [...section.querySelectorAll("article[data-agent]")].find(({ dataset }) =>
      isWanted(dataset.agent, dataset.sample),
    );
    wanted?.classList.add("wanted");
    wanted?.scrollIntoView({ block: "center" });
  }

  Object.assign(Turinglike, { one });
}
