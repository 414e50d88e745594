// The list of all stimuli with what was answered, page by page, from the index alone; and what is chosen of it.
"use strict";

{
  const { badge, byId, coordinate, count, el, note, quote, small, step, svg } = Turinglike;
  const { colourOf, line, swatchOf, TASKS, toPicture } = Turinglike;
  const { forList, forOne, PEOPLE, picture, selection, state, stimulus } = Turinglike;
  const PAGE = 25;
  const ANSWERS = 8; // of one stimulus that stand in the list
  const PATHS = 12; // likewise, each on a small picture of its own
  const PERSONS = 6; // whose paths are drawn
  const STATUSES = ["ok", "rejected", "failed"];
  const SHOWN = { "": "all", disagree: "only disagreement", failed: "only failed" };
  const SORTS = {
    set: "as in the set",
    id: "by id",
    answer: "by answer",
    disagreement: "least agreement first",
    attempts: "most attempts first",
  };
  const controls = {};

  const option = (value, text = value) => el("option", { value }, text);
  const options = (values, text = (value) => value) => values.map((value) => option(value, text(value)));

  /** The form of choices, made once. */
  function form() {
    const { tasks, agents, people, flags, meta } = Turinglike.index;
    const machines = agents.filter((name) => !people.includes(name));
    const group = (label, names) => names.length > 0 && el("optgroup", { label }, options(names));
    const everybody = [option("", "everybody"), people.length > 1 && option(PEOPLE, "all people")];
    const kinds = [...new Set(flags.flat())].sort();
    const columns = meta.map(([column]) => column);
    const fields = [
      ["task", "Task", tasks.length > 1, [option("", "all"), options(tasks, (task) => TASKS[task] ?? task)]],
      ["agent", "Agent", true, [everybody, group("Agents", machines), group("People", people)]],
      ["status", "Status", true, [option("", "any"), options(STATUSES)]],
      ["flag", "Flag", kinds.length > 0, [option("", "any"), options(kinds)]],
      ["column", "Column", meta.length > 0, [option("", "–"), options(columns, (name) => name.replaceAll("_", " "))]],
      ["value", "Value", meta.length > 0, []],
      ["only", "Show", true, Object.entries(SHOWN).map(([value, text]) => option(value, text))],
      ["sort", "Order", true, Object.entries(SORTS).map(([value, text]) => option(value, text))],
    ];
    let timer = null;
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(() => go({ q: controls.q.value }), 200);
    };
    controls.q = el("input", { type: "search", id: "q", placeholder: "words of answers, ids, cues …", input: later });
    for (const [name, , , choices] of fields) {
      const change = () => go({ ...(name === "column" ? { value: "" } : {}), [name]: controls[name].value });
      controls[name] = el("select", { change }, choices);
    }
    return el(
      "form.choices",
      { role: "search", "aria-label": "Choose answers", submit: (event) => event.preventDefault() },
      el("label.search", el("span", "Search"), controls.q),
      fields.map(([name, label, has]) => has && el("label", el("span", label), controls[name])),
    );
  }

  /** Go to the first page of what is now chosen; typing makes no history. */
  const go = (changes) => location.replace(forList({ page: 1, ...changes }));

  function list() {
    const section = byId("list");
    if (!section.firstChild) section.append(form(), el("div", { id: "found" }));
    const column = Turinglike.index.meta.find(([name]) => name === state.column);
    controls.value.replaceChildren(option("", "any"), ...options(column?.[1] ?? []));
    controls.value.disabled = column === undefined;
    for (const [name, control] of Object.entries(controls))
      if (document.activeElement !== control) control.value = state[name];
    const { numbers, records } = selection();
    const pages = Math.max(1, Math.ceil(numbers.length / PAGE));
    const page = within(state.page, pages);
    const shown = numbers.slice((page - 1) * PAGE, page * PAGE);
    byId("found").replaceChildren(
      el("p.found", { role: "status" }, `${count(numbers.length, "stimulus", "stimuli")}, ${count(records, "answer")}`),
      pager(page, pages, "Pages"),
      el("ol.rows", { start: (page - 1) * PAGE + 1 }, shown.map(row)),
      shown.length ? pager(page, pages, "Pages, again") : note("Nothing is chosen: take a choice back."),
    );
  }

  const within = (text, pages) => Math.min(Math.max(1, Number.parseInt(text, 10) || 1), pages);

  function pager(page, pages, name) {
    const to = (number, text, label, rel = null) => {
      const leads = number >= 1 && number <= pages && number !== page;
      return step(leads ? forList({ page: number }) : null, text, { "aria-label": label, rel });
    };
    const change = ({ target }) => (location.hash = forList({ page: within(target.value, pages) }));
    const field = { type: "text", inputmode: "numeric", value: page, size: 5, "aria-label": "Page", change };
    return el(
      "nav.pager.line",
      { "aria-label": name },
      to(1, "«", "First page"),
      to(page - 1, "‹", "Page before", "prev"),
      el("input", field),
      small(`of ${pages.toLocaleString("en")}`),
      to(page + 1, "›", "Next page", "next"),
      to(pages, "»", "Last page"),
    );
  }

  function row(number) {
    const { stimuli, tasks } = Turinglike.index;
    const seen = picture(stimuli.picture[number]);
    const href = forOne(number);
    const chosen = selection().chosen(number);
    const task = tasks[stimuli.task[number]];
    const alike = stimuli.alike[number];
    return el(
      "li",
      seen?.url && el("a", { href, tabindex: -1, "aria-hidden": "true" }, thumbnail(seen)),
      el(
        "div.what",
        el("a.open", { href }, quote((!seen && stimuli.title[number]) || stimuli.id[number])),
        el("div.small", TASKS[task] ?? task, alike >= 0 && ` · agreement\u00a0${alike}\u00a0%`),
      ),
      seen?.url && task === "attention_prediction"
        ? el("ul.paths", drawnPaths(chosen, number, seen))
        : el("ul.answers", answers(chosen, number)),
    );
  }

  /** Those of agents and those of people, as they are in the index. */
  function apart(chosen) {
    const { records, agents, people } = Turinglike.index;
    const person = new Set(people);
    const isHuman = (at) => person.has(agents[records.agent[at]]);
    return [chosen.filter((at) => !isHuman(at)), chosen.filter(isHuman)];
  }

  /** So many of one agent after the other that each agent's first samples come before anybody's later ones. */
  function firstSamples(records, most) {
    const { sample } = Turinglike.index.records;
    const first = records.toSorted((record, other) => sample[record] - sample[other]).slice(0, most);
    return first.sort((record, other) => record - other);
  }

  /** Whose an answer is, as a link to it. */
  function whose(at, number, ...shown) {
    const { records, agents } = Turinglike.index;
    const name = agents[records.agent[at]];
    const sample = records.sample[at];
    const which = sample > 0 && [" ", small(`sample ${sample}`)];
    return el("a.who", { href: forOne(number, { agent: name, sample }) }, shown, quote(name), which);
  }

  function standing(at) {
    const status = STATUSES[Turinglike.index.records.status[at]];
    return status !== "ok" && [badge(status, status === "failed" ? "alert" : "warn"), " "];
  }

  /** Paths beside each other, each on a picture of its own under its name; drawn once their records are there. */
  function drawnPaths(chosen, number, seen) {
    const { records, texts } = Turinglike.index;
    const [machines, humans] = apart(chosen);
    const shown = [...firstSamples(machines, PATHS), ...humans.slice(0, PERSONS)];
    const holders = shown.map(() => el("span.sketch", thumbnail(seen)));
    const tiles = shown.map((at, nth) =>
      el("li", whose(at, number, holders[nth]), standing(at), small(texts[records.text[at]])),
    );
    const rest = chosen.length - shown.length;
    if (rest > 0) tiles.push(el("li", small(`and ${count(rest, "more path")}`)));
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
    const points = toPicture(answer.fixations, answer, [width, height]);
    const fill = colourOf(0, kind);
    const start = ([x, y]) => ({ cx: coordinate(x), cy: coordinate(y), r: Math.max(width, height) / 30, fill });
    holder.append(
      svg(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "xMinYMin meet", "aria-hidden": "true" },
        svg("polyline.under", { points: line(points) }),
        svg("polyline.over", { points: line(points), stroke: fill }),
        points.slice(0, 1).map((point) => svg("circle", start(point))),
      ),
    );
  }

  /** One line for each agent that answered, one for all people. */
  function answers(chosen, number) {
    const { flags, records, stimuli, tasks, texts } = Turinglike.index;
    const [machines, humans] = apart(chosen);
    const task = tasks[stimuli.task[number]];
    const text = (shown, first, ...more) => el("span.text", swatchOf(task, first), quote(shown), more);
    const textOf = (at) => texts[records.text[at]];
    const lines = firstSamples(machines, ANSWERS).map((at) => {
      const flag = flags[records.flags[at]].length > 0 && [" ", small("⚑")];
      return el("li", whose(at, number), " ", standing(at), text(textOf(at), textOf(at)), flag);
    });
    if (machines.length > ANSWERS) lines.push(el("li", small(`and ${machines.length - ANSWERS} more`)));
    if (humans.length) {
      const tally = new Map();
      for (const at of humans) tally.set(textOf(at), (tally.get(textOf(at)) ?? 0) + 1);
      const most = [...tally].sort(([, times], [, other]) => other - times).slice(0, 3);
      const words = most.map(([word, times]) => (times > 1 ? `${word} × ${times}` : word)).join(" · ");
      const people = el("span.who", count(humans.length, "person", "people"));
      lines.push(el("li", people, " ", text(words, most[0][0], tally.size > 3 && " · …")));
    }
    return lines;
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
