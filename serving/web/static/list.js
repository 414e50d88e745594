// The list of all stimuli with what was answered, page by page, from the index alone; and what is chosen of it.
"use strict";

{
  const {
    badge,
    byId,
    colourOf,
    coordinate,
    count,
    el,
    forList,
    forOne,
    note,
    PEOPLE,
    picture,
    said,
    selection,
    small,
    state,
    step,
    stimulus,
    svg,
    swatch,
    TASKS,
    WORDS,
  } = Turinglike;
  const PAGE = 25;
  const ANSWERS = 8; // of one stimulus that stand in the list
  const PATHS = 12; // likewise, each on a small picture of its own
  const PERSONS = 6; // whose paths are drawn
  const SORTS = {
    set: "as in the set",
    id: "by id",
    answer: "by answer",
    disagreement: "least agreement first",
    attempts: "most attempts first",
  };
  const controls = {};

  /** The form of choices, made once. */
  function form() {
    const { tasks, agents, people, flags, meta } = Turinglike.index;
    const machines = agents.filter((name) => !people.includes(name));
    const kinds = [...new Set(flags.flat())].sort();
    const only = { "": "all", disagree: "only disagreement", failed: "only failed" };
    controls.q = el("input", { type: "search", id: "q", placeholder: "words of answers, ids, cues …" });
    const groups = [
      ["Agents", machines],
      ["People", people],
    ].filter(([, names]) => names.length);
    controls.agent = el("select", null, el("option", { value: "" }, "everybody"));
    if (people.length > 1) controls.agent.append(el("option", { value: PEOPLE }, "all people"));
    controls.agent.append(
      ...groups.map(([label, names]) => el("optgroup", { label }, ...names.map((one) => option(one, one)))),
    );
    controls.task = select([["", "all"], ...tasks.map((task) => [task, TASKS[task] ?? task])]);
    controls.status = select([
      ["", "any"],
      ["ok", "ok"],
      ["rejected", "rejected"],
      ["failed", "failed"],
    ]);
    controls.flag = select([["", "any"], ...kinds.map((one) => [one, one])]);
    controls.column = select([["", "–"], ...meta.map(([name]) => [name, name.replaceAll("_", " ")])]);
    controls.value = select([["", "any"]]);
    controls.only = select(Object.entries(only));
    controls.sort = select(Object.entries(SORTS));
    const fields = [
      ["Task", controls.task, tasks.length > 1],
      ["Agent", controls.agent, true],
      ["Status", controls.status, true],
      ["Flag", controls.flag, kinds.length > 0],
      ["Column", controls.column, meta.length > 0],
      ["Value", controls.value, meta.length > 0],
      ["Show", controls.only, true],
      ["Order", controls.sort, true],
    ];
    let timer = null;
    controls.q.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => go({ q: controls.q.value }), 200);
    });
    for (const name of ["task", "agent", "status", "flag", "value", "only", "sort"])
      controls[name].addEventListener("change", () => go({ [name]: controls[name].value }));
    controls.column.addEventListener("change", () => go({ column: controls.column.value, value: "" }));
    return el(
      "form",
      { role: "search", "aria-label": "Choose answers", class: "choices", submit: (event) => event.preventDefault() },
      el("label", { class: "search" }, el("span", null, "Search"), controls.q),
      ...fields
        .filter(([, , has]) => has)
        .map(([label, control]) => el("label", null, el("span", null, label), control)),
    );
  }

  const option = (value, text) => el("option", { value }, text);
  const select = (options) => el("select", null, ...options.map(([value, text]) => option(value, text)));
  /** Go to the first page of what is now chosen; typing makes no history. */
  const go = (changes) => location.replace(forList({ page: 1, ...changes }));

  function list() {
    const section = byId("list");
    if (!section.firstChild) section.append(form(), el("div", { id: "found" }));
    const column = Turinglike.index.meta.find(([name]) => name === state.column);
    controls.value.replaceChildren(option("", "any"), ...(column?.[1] ?? []).map((one) => option(one, one)));
    controls.value.disabled = column === undefined;
    for (const [name, control] of Object.entries(controls))
      if (document.activeElement !== control) control.value = state[name];
    const { numbers, records } = selection();
    const pages = Math.max(1, Math.ceil(numbers.length / PAGE));
    const page = Math.min(Math.max(1, Number.parseInt(state.page, 10) || 1), pages);
    const shown = numbers.slice((page - 1) * PAGE, page * PAGE);
    byId("found").replaceChildren(
      el(
        "p",
        { role: "status", class: "found" },
        `${count(numbers.length, "stimulus", "stimuli")}, ${count(records, "answer")}`,
      ),
      pager(page, pages, "Pages"),
      el("ol", { class: "rows", start: (page - 1) * PAGE + 1 }, ...shown.map(row)),
      shown.length ? pager(page, pages, "Pages, again") : note("Nothing is chosen: take a choice back."),
    );
  }

  function pager(page, pages, name) {
    const to = (number, text, label, rel = null) => {
      const leads = number >= 1 && number <= pages && number !== page;
      return step(leads ? forList({ page: number }) : null, text, { "aria-label": label, rel });
    };
    const field = el("input", { type: "text", inputmode: "numeric", value: page, size: 5, "aria-label": "Page" });
    field.addEventListener("change", () => {
      location.hash = forList({ page: Math.min(Math.max(1, Number.parseInt(field.value, 10) || 1), pages) });
    });
    return el(
      "nav",
      { class: "pager line", "aria-label": name },
      to(1, "«", "First page"),
      to(page - 1, "‹", "Page before", "prev"),
      field,
      small(`of ${pages.toLocaleString("en")}`),
      to(page + 1, "›", "Next page", "next"),
      to(pages, "»", "Last page"),
    );
  }

  function row(number) {
    const { stimuli, records, tasks } = Turinglike.index;
    const { matches } = selection();
    const seen = picture(stimuli.picture[number]);
    const href = forOne(number);
    const chosen = [];
    for (let at = stimuli.first[number]; at < stimuli.first[number + 1]; at += 1)
      if (matches(at, number)) chosen.push(at);
    const task = tasks[stimuli.task[number]];
    const alike = stimuli.alike[number];
    const shown = el(
      "li",
      null,
      seen?.url ? el("a", { href, tabindex: -1, "aria-hidden": "true" }, thumbnail(seen)) : null,
      el(
        "div",
        { class: "what" },
        el(
          "a",
          { href, class: "open" },
          said(seen || !stimuli.title[number] ? stimuli.id[number] : stimuli.title[number]),
        ),
        el("div", { class: "small" }, TASKS[task] ?? task, alike >= 0 ? ` · agreement\u00a0${alike}\u00a0%` : ""),
      ),
      seen?.url && task === "attention_prediction"
        ? el("ul", { class: "paths" }, ...drawnPaths(chosen, number, seen))
        : el("ul", { class: "answers" }, ...answers(chosen, number)),
    );
    return shown;
  }

  /** Those of agents and those of people, as they are in the index. */
  function apart(chosen) {
    const { records, agents, people } = Turinglike.index;
    const person = new Set(people);
    const isHuman = (at) => person.has(agents[records.agent[at]]);
    return [chosen.filter((at) => !isHuman(at)), chosen.filter(isHuman)];
  }

  /** So many of one agent after the other that each agent's first samples come before anybody's later ones. */
  function firstSamples(some, most) {
    const { sample } = Turinglike.index.records;
    if (some.length <= most) return some;
    return some
      .toSorted((one, other) => sample[one] - sample[other])
      .slice(0, most)
      .sort((one, other) => one - other);
  }

  /** Whose an answer is, as a link to it. */
  function whose(at, number, ...shown) {
    const { records, agents } = Turinglike.index;
    const name = agents[records.agent[at]];
    const sample = records.sample[at];
    return el(
      "a",
      { href: forOne(number, { agent: name, sample }), class: "who" },
      ...shown,
      said(name),
      sample ? [" ", small(`sample ${sample}`)] : "",
    );
  }

  function standing(at) {
    const status = ["ok", "rejected", "failed"][Turinglike.index.records.status[at]];
    return status === "ok" ? null : [badge(status, status === "failed" ? "alert" : "warn"), " "];
  }

  /** Paths beside each other, each on a picture of its own under its name; drawn once their records are there. */
  function drawnPaths(chosen, number, seen) {
    const { records, texts } = Turinglike.index;
    const [machines, humans] = apart(chosen);
    const shown = [...firstSamples(machines, PATHS), ...humans.slice(0, PERSONS)];
    const holders = shown.map(() => el("span", { class: "sketch" }, thumbnail(seen)));
    const tiles = shown.map((at, nth) =>
      el("li", null, whose(at, number, holders[nth]), standing(at), small(texts[records.text[at]])),
    );
    const rest = chosen.length - shown.length;
    if (rest > 0) tiles.push(el("li", null, small(`and ${count(rest, "more path")}`)));
    stimulus(number).then(({ lines }) => {
      const first = Turinglike.index.stimuli.first[number];
      shown.forEach((at, nth) => sketch(holders[nth], JSON.parse(lines[at - first]), seen));
    });
    return tiles;
  }

  const thumbnail = ({ url }) =>
    el("img", { src: url, alt: "", loading: "lazy", error: (event) => event.target.remove() });

  function sketch(holder, { answer, kind }, { width, height }) {
    if (!Array.isArray(answer?.fixations) || !Array.isArray(answer.frame)) return;
    const scale = [width / answer.frame[0], height / answer.frame[1]];
    const points = answer.fixations.map(([x, y]) => [coordinate(x * scale[0]), coordinate(y * scale[1])]);
    const line = points.map((point) => point.join(",")).join(" ");
    const colour = colourOf(0, kind);
    const over = svg("polyline", { class: "over", points: line, stroke: colour });
    const start = points
      .slice(0, 1)
      .map(([cx, cy]) => svg("circle", { cx, cy, r: Math.max(width, height) / 30, fill: colour }));
    holder.append(
      svg(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "xMinYMin meet", "aria-hidden": "true" },
        svg("polyline", { class: "under", points: line }),
        over,
        ...start,
      ),
    );
  }

  /** One line for each agent that answered, one for all people. */
  function answers(chosen, number) {
    const { records, texts, flags } = Turinglike.index;
    const [machines, humans] = apart(chosen);
    const lines = firstSamples(machines, ANSWERS).map((at) =>
      el(
        "li",
        null,
        whose(at, number),
        " ",
        standing(at),
        el("span", { class: "text" }, swatchOf(texts[records.text[at]], number), said(texts[records.text[at]])),
        flags[records.flags[at]].length ? [" ", small("⚑")] : null,
      ),
    );
    if (machines.length > ANSWERS) lines.push(el("li", null, small(`and ${machines.length - ANSWERS} more`)));
    if (humans.length) {
      const tally = new Map();
      for (const at of humans) tally.set(texts[records.text[at]], (tally.get(texts[records.text[at]]) ?? 0) + 1);
      const most = [...tally].sort((one, other) => other[1] - one[1]).slice(0, 3);
      const told = most.map(([text, times]) => (times > 1 ? `${text} × ${times}` : text)).join(" · ");
      lines.push(
        el(
          "li",
          null,
          el("span", { class: "who" }, count(humans.length, "person", "people")),
          " ",
          el("span", { class: "text" }, swatchOf(most[0][0], number), said(told), tally.size > 3 ? " · …" : ""),
        ),
      );
    }
    return lines;
  }

  /** The colour that an answer names, if it names one. */
  function swatchOf(text, number) {
    const { stimuli, tasks } = Turinglike.index;
    return tasks[stimuli.task[number]] === "color_estimation" && WORDS.includes(text) ? swatch(text) : null;
  }

  /** Move to the row that is so many further than the one with the focus. */
  function moveRow(by) {
    const links = [...document.querySelectorAll("#found .rows a.open")];
    const at = links.indexOf(document.activeElement);
    links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
  }

  function turnPage(by) {
    document.querySelector(`#found .pager a[rel=${by > 0 ? "next" : "prev"}]`)?.click();
  }

  Object.assign(Turinglike, { list, moveRow, turnPage });
}
