// One stimulus: what was asked, and the answers of agents and people side by side.
"use strict";

{
  const {
    answer,
    boxes,
    byId,
    chat,
    colourOf,
    count,
    el,
    folded,
    forList,
    forOne,
    lazily,
    note,
    numberOf,
    pairs,
    paths,
    picture,
    recorded,
    said,
    selection,
    small,
    state,
    step,
    stimulus,
    swatch,
    TASKS,
    WORDS,
  } = Turinglike;
  const SHOWN = 24; // cards of one side, until the others are asked for
  const OWN = ["id", "task", "image", "meta", "history", "target_box"]; // fields that are shown in another way

  let asked = 0;

  async function one() {
    const turn = (asked += 1);
    const number = numberOf(state.of, state.stimulus);
    const section = byId("one");
    if (number < 0) {
      section.replaceChildren(note("There is no such stimulus here."));
      return;
    }
    const { row, lines } = await stimulus(number);
    if (turn !== asked) return; // somebody has gone on meanwhile
    const { index } = Turinglike;
    const task = index.tasks[index.stimuli.task[number]];
    const first = index.stimuli.first[number];
    const given = lines.map((line, nth) => {
      const record = JSON.parse(line);
      const agent = index.agents[index.records.agent[first + nth]];
      return { record, line, name: record.sample > 0 ? `${agent} (sample ${record.sample})` : agent, agent };
    });
    const seen = picture(index.stimuli.picture[number]);
    const shown = together(task, given, row, seen);
    const others = [about(row, index.stimuli.title[number]), sides(task, given, row, seen)];
    const wide = shown.querySelector("figcaption") !== null; // with controls
    const parts = wide || seen === null ? [shown, ...others] : [shown, el("div", null, ...others)];
    section.replaceChildren(
      head(number, task),
      el("div", { class: parts.length === 2 ? "asked pictured" : "asked" }, ...parts),
    );
    mark(section);
  }

  function head(number, task) {
    const { numbers } = selection();
    const at = numbers.indexOf(number);
    const to = (other, text, label, side) =>
      step(other === undefined ? null : forOne(other), text, { class: `button quiet ${side}`, "aria-label": label });
    const { id } = Turinglike.index.stimuli;
    return el(
      "div",
      { class: "line" },
      el("a", { class: "button quiet back", href: forList({}) }, "List"),
      to(numbers[at - 1], "‹", "The one before", "before"),
      to(at < 0 ? undefined : numbers[at + 1], "›", "The next one", "next"),
      el("h2", null, said(id[number]), " ", small(TASKS[task] ?? task)),
      at < 0 ? null : small(`${(at + 1).toLocaleString("en")} of ${numbers.length.toLocaleString("en")}`),
    );
  }

  function about(row, title) {
    const rows = Object.entries({ ...row, ...(isObject(row.meta) ? row.meta : {}) })
      .filter(([name, value]) => !OWN.includes(name) && value !== null && value !== "")
      .map(([name, value]) => [
        name.replaceAll("_", " "),
        said(typeof value === "string" ? value : JSON.stringify(value)),
      ]);
    const history = Array.isArray(row.history) ? row.history.filter(isObject) : [];
    return el(
      "div",
      { class: "about" },
      typeof row.cue === "string" ? el("p", { class: "word" }, el("strong", null, said(row.cue))) : null,
      rows.length ? pairs(rows.slice(0, 40)) : null,
      history.length ? folded(`${count(history.length, "message")} before`, chat(history)) : null,
      title && typeof row.image === "string" ? el("p", { class: "small" }, said(row.image)) : null,
    );
  }

  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  /** The picture with everybody's answers on it, or alone; what people said most. */
  function together(task, given, row, seen) {
    const stands = given.filter(({ record }) => record.status !== "failed" && isObject(record.answer));
    const parts = [];
    if (seen?.trouble)
      parts.push(el("div", { class: "box-notice" }, "The picture cannot be shown: ", said(seen.trouble)));
    if (seen?.changed) parts.push(el("div", { class: "box-notice" }, "The file has changed since it was answered."));
    let machines = 0;
    const layers = stands
      .filter(({ record }) => wellFormed(task, record.answer))
      .map(({ record, name }) => {
        const number = record.kind === "human" ? 0 : machines++;
        const { kind, sample } = record;
        return { label: name, kind, sample, answer: record.answer, colour: colourOf(number, kind) };
      });
    const drawn =
      task === "attention_prediction"
        ? paths(layers, row, seen)
        : task === "object_detection"
          ? boxes(layers, row, seen)
          : null;
    if (drawn) parts.push(drawn);
    else if (seen?.url)
      parts.push(
        el(
          "figure",
          { class: "overlay" },
          el("img", { src: seen.url, alt: `The picture ${seen.name}`, error: unshown }),
        ),
      );
    if (seen?.width) parts.push(note(`${seen.width} × ${seen.height} pixels`));
    parts.push(...tally(task, stands));
    return el("div", { class: "together" }, ...parts);
  }

  const unshown = (event) => event.target.replaceWith(note("The picture cannot be shown."));

  const pairsOf = (value, size) =>
    Array.isArray(value) &&
    value.every((one) => Array.isArray(one) && one.length === size && one.every(Number.isFinite));
  function wellFormed(task, given) {
    if (task === "attention_prediction") return pairsOf(given.fixations, 2) && pairsOf([given.frame], 2);
    return (
      Array.isArray(given.labels) && (given.boxes === null || given.boxes === undefined || pairsOf(given.boxes, 4))
    );
  }

  /** Words that several gave, with who gave them; of people how many. */
  function tally(task, stands) {
    const word = { color_estimation: "color", word_association: "word", judgement: "verdict" }[task];
    if (word === undefined || stands.length < 3) return [];
    const said_ = new Map();
    for (const { record, name } of stands) {
      const key = String(record.answer[word]).toLowerCase();
      const entry = said_.get(key) ?? said_.set(key, { people: 0, agents: [] }).get(key);
      if (record.kind === "human") entry.people += 1;
      else entry.agents.push(name);
    }
    const people = stands.filter(({ record }) => record.kind === "human").length;
    const rows = [...said_]
      .sort(([, one], [, other]) => other.people - one.people || other.agents.length - one.agents.length)
      .slice(0, 15)
      .map(([text, entry]) => {
        const length = el("span", { class: "length", "aria-hidden": "true" });
        length.style.width = `${(100 * (people ? entry.people / people : entry.agents.length / stands.length)).toFixed(1)}%`;
        return el(
          "li",
          null,
          length,
          task === "color_estimation" && WORDS.includes(text) ? swatch(text) : null,
          el("strong", null, said(text)),
          people ? ` ${count(entry.people, "person", "people")}` : "",
          entry.agents.length ? [" ", small(said(entry.agents.join(", ")))] : null,
        );
      });
    return [
      el("h3", null, people ? "Words of people, and whose else" : "Words"),
      el("ul", { class: "tally" }, ...rows),
    ];
  }

  /** Cards of machines on one side, of people on the other. */
  function sides(task, given, row, seen) {
    const people = given.filter(({ record }) => record.kind === "human");
    const machines = given.filter(({ record }) => record.kind !== "human");
    const card = (one) => {
      const shown = answer(one.record, row, seen, { name: one.agent, calm: true, bare: true });
      shown.dataset.agent = one.agent;
      shown.dataset.sample = one.record.sample;
      const href = forOne(numberOf(state.of, state.stimulus), { agent: one.agent, sample: one.record.sample });
      shown.lastChild.append(
        el("a", { href }, "Link to this answer"),
        lazily("Record", () => recorded(one.record, one.line)),
      );
      return shown;
    };
    const side = (title, some) => {
      if (!some.length) return null;
      const wanted = some.findIndex((one) => one.agent === state.who && String(one.record.sample) === state.sample);
      const shown = some.slice(0, Math.max(SHOWN, wanted + 1));
      const cards = el("div", { class: task === "conversation" ? "cards two" : "cards" }, ...shown.map(card));
      const rest = some.slice(shown.length);
      const more = el("button", { type: "button", class: "quiet" }, `Show ${count(rest.length, "more answer")}`);
      more.addEventListener("click", () => {
        cards.append(...rest.map(card));
        more.remove();
      });
      return el(
        "section",
        { "aria-label": title },
        el("h3", null, title, " ", small(some.length)),
        cards,
        rest.length ? more : null,
      );
    };
    const parts = [side("Agents", machines), side("People", people)].filter((part) => part !== null);
    if (!parts.length) parts.push(note("Nobody has answered yet."));
    return el("div", { class: `sides ${parts.length > 1 ? "several" : ""}` }, ...parts);
  }

  /** Show the answer that the address names. */
  function mark(section) {
    if (state.who === "") return;
    const wanted = [...section.querySelectorAll("article[data-agent]")].find(
      ({ dataset }) => dataset.agent === state.who && (state.sample === "" || dataset.sample === state.sample),
    );
    wanted?.classList.add("wanted");
    wanted?.scrollIntoView({ block: "center" });
  }

  Object.assign(Turinglike, { one });
}
