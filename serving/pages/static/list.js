// The answers: what is chosen of them, which columns they stand in, and the grid, page by page.
"use strict";

{
  const { byId, count, el, note, quiet, quote, small, step } = Turinglike;
  const { AGREEMENT, PEOPLE, STATUSES, columns, forList, grid, kindOfRows } = Turinglike;
  const { nameOf, replaceGrid, selection, state, taskOf } = Turinglike;
  const PAGE = 25; // rows
  const GROUPS = 40; // that are listed above the grid
  const SHOWN = { "": "all", disagree: "only disagreement", failed: "only failed" };
  const FOLDED = ["agent", "status", "flag", "column", "value"]; // choices that fewer need
  const SORTS = {
    set: "as in the set",
    name: "by name",
    disagreement: "least agreement first",
    flags: "most flags first",
    attempts: "most attempts first",
  };
  const KINDS = { picture: "pictures", cue: "cues", talk: "talks", trial: "trials", stimulus: "stimuli" };
  const controls = {};
  const opened = new Set(); // parts that are folded out

  const option = (value, text = value) => el("option", { value }, text);
  const options = (values, text = (value) => value) => values.map((value) => option(value, text(value)));
  const plain = (name) => name.replaceAll("_", " ");

  /** The form of choices, made once: most of them folded away. */
  function form() {
    const { tasks, agents, people, flags, meta } = Turinglike.index;
    const machines = agents.filter((name) => !people.includes(name));
    const group = (label, names) => names.length > 0 && el("optgroup", { label }, options(names));
    const everybody = [option("", "everybody"), people.length > 1 && option(PEOPLE, "all people")];
    const kinds = [...new Set(flags.flat())].sort();
    const fields = [
      ["task", "Task", tasks.length > 1, [option("", "all"), options(tasks, taskOf)]],
      ["only", "Show", true, Object.entries(SHOWN).map(([value, text]) => option(value, text))],
      ["sort", "Order", true, []],
      ["group", "Group", true, []],
      ["agent", "Agent", true, [everybody, group("Agents", machines), group("People", people)]],
      ["status", "Status", true, [option("", "any"), options(STATUSES)]],
      ["flag", "Flag", kinds.length > 0, [option("", "any"), options(kinds)]],
      ["column", "Field", meta.length > 0, [option("", "–"), meta.map(([name]) => option(name, plain(name)))]],
      ["value", "Value", meta.length > 0, []],
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
    const drawn = (folded) =>
      fields
        .filter(([name, , has]) => has && FOLDED.includes(name) === folded)
        .map(([name, label]) => el("label", el("span", label), controls[name]));
    if (FOLDED.some((name) => state[name] !== "")) opened.add("more");
    return el(
      "form",
      { role: "search", "aria-label": "Choose answers", submit: (event) => event.preventDefault() },
      el("div.choices", el("label.search", el("span", "Search"), controls.q), drawn(false)),
      foldedOut("more", "details", el("summary", "More choices"), el("div.choices", drawn(true))),
    );
  }

  /** A part that is folded out or away as it was when the page was made before. */
  function foldedOut(id, selector, ...content) {
    const toggle = ({ target }) => (target.open ? opened.add(id) : opened.delete(id));
    return el(selector, { id, open: opened.has(id), toggle }, content);
  }

  /** Go to the first page of what is now chosen; typing makes no history. */
  const go = (changes) => location.replace(forList({ page: 1, ...changes }));

  /** What rows can be ordered by, and by what they can be grouped: by columns too. */
  function fillOrders() {
    const { meta } = Turinglike.index;
    const named = (column) => `${taskOf(column.task)}: ${nameOf(column)}`;
    const answers = columns().filter(({ who }) => who !== AGREEMENT);
    const by = ({ key, ...column }, turned) => option(turned + key, `${named(column)}${turned && ", turned round"}`);
    const chosen = columns().filter(({ key }) => [key, `-${key}`].includes(state.sort));
    const turned = SORTS[state.sort.slice(1)] && option(state.sort, `${SORTS[state.sort.slice(1)]}, turned round`);
    controls.sort.replaceChildren(
      ...Object.entries(SORTS).map(([value, text]) => option(value, text)),
      ...(turned ? [turned] : []),
      ...chosen.map((column) => by(column, state.sort.startsWith("-") ? "-" : "")),
    );
    controls.group.replaceChildren(
      option("", "not"),
      ...meta.map(([name]) => option(`meta.${name}`, `by ${plain(name)}`)),
      ...answers.map((column) => option(column.key, `by ${named(column)}`)),
    );
  }

  function list() {
    const section = byId("list");
    if (!section.firstChild)
      section.append(form(), foldedOut("columns", "details.arrange"), el("div", { id: "found" }));
    const field = Turinglike.index.meta.find(([name]) => name === state.column);
    controls.value.replaceChildren(option("", "any"), ...options(field?.[1] ?? []));
    controls.value.disabled = field === undefined;
    fillOrders();
    for (const [name, control] of Object.entries(controls)) {
      if (document.activeElement !== control) control.value = state[name];
      if (control.selectedIndex === -1) control.selectedIndex = 0; // the address names what there is not
    }
    fillColumns();
    const { rows, all, groups, records } = selection();
    const pages = Math.max(1, Math.ceil(all / PAGE));
    const page = within(state.page, pages);
    const first = (page - 1) * PAGE;
    const kind = kindOfRows();
    const parts = [
      el("p.found", { role: "status" }, `${count(all, kind, KINDS[kind])}, ${count(records, "answer")}`),
      groups === null ? "" : groupLinks(groups),
      pager(page, pages, "Pages"),
      rows.length ? grid(entriesOf(first), first, sortBy) : note("Nothing is chosen: take a choice back."),
      rows.length ? pager(page, pages, "Pages, again") : "",
    ];
    replaceGrid(byId("found"), parts, shown === location.hash);
    shown = location.hash;
  }
  let shown = ""; // the address of the grid that stands there

  /** The rows of a page, with the name of each group before its first row there. */
  function entriesOf(first) {
    const { rows, groups } = selection();
    const shown = rows.slice(first, first + PAGE);
    if (groups === null) return shown;
    const entries = [];
    let start = 0;
    for (const { name, rows: members } of groups) {
      const here = members.slice(Math.max(0, first - start), Math.max(0, first + PAGE - start));
      if (here.length) entries.push({ name, size: members.length, of: rows.length }, ...here);
      start += members.length;
    }
    return entries;
  }

  /** Each group with its size, as a link to the page where it begins. */
  function groupLinks(groups) {
    let start = 0;
    const links = groups.slice(0, GROUPS).map(({ name, rows }) => {
      const href = forList({ page: Math.floor(start / PAGE) + 1 });
      start += rows.length;
      return el("li", el("a", { href }, quote(name)), " ", small(rows.length.toLocaleString("en")));
    });
    const left = groups.length - GROUPS;
    const more = left > 0 && el("li", small(`and ${count(left, "more group")}`));
    return el("nav", { "aria-label": "Groups" }, el("ul.groups", links, more));
  }

  /** Order by a column; once more turns it round, and a third time takes it back. */
  function sortBy(key) {
    const next = { [key]: `-${key}`, [`-${key}`]: "set" }[state.sort] ?? key;
    go({ sort: next });
  }

  // Columns

  /** The part in which columns are shown, hidden and pinned. */
  function fillColumns() {
    const part = byId("columns");
    const all = columns();
    const shown = all.filter(({ key }) => !state.hide.includes(key));
    const tasks = [...new Set(all.map(({ task }) => task))];
    const { people } = Turinglike.index;
    const each = el("input", {
      type: "checkbox",
      checked: state.people === "each",
      change: ({ target }) => arrange({ people: target.checked ? "each" : "" }, "#columns .each input"),
    });
    part.replaceChildren(
      el("summary", "Columns ", small(`${shown.length} of ${all.length}`)),
      el("div.line", people.length > 1 && el("label.choice.each", each, " one for each person"), toggles(all)),
      el("div.tasks", tasks.map((task) => columnsOf(all.filter((column) => column.task === task)))),
    );
  }

  function toggles(all) {
    const hidden = all.filter(({ key }) => state.hide.includes(key));
    return [
      hidden.length > 0 && quiet("show all", () => arrange({ hide: [] }, "#columns summary")),
      state.pin.length > 0 && quiet("take all pins out", () => arrange({ pin: [] }, "#columns summary")),
    ];
  }

  function columnsOf(listed) {
    const [{ task }] = listed;
    const hides = listed.some(({ key }) => state.hide.includes(key));
    const keys = listed.map(({ key }) => key);
    const others = state.hide.filter((key) => !keys.includes(key));
    const all = el("input", {
      type: "checkbox",
      checked: !hides,
      "aria-label": `All columns: ${taskOf(task)}`,
      change: ({ target }) => arrange({ hide: target.checked ? others : [...others, ...keys] }, boxOf("all", task)),
      "data-all": task,
    });
    return el(
      "fieldset",
      el("legend", el("label.choice", all, " ", taskOf(task))),
      el("ul", listed.map(columnLine)),
    );
  }

  const boxOf = (kind, key) => `#columns [data-${kind}="${CSS.escape(key)}"]`;
  const without = (keys, key) => keys.filter((other) => other !== key);

  function columnLine(column) {
    const { key } = column;
    const isPinned = state.pin.includes(key);
    const show = el("input", {
      type: "checkbox",
      checked: !state.hide.includes(key),
      "data-show": key,
      change: ({ target }) =>
        arrange({ hide: target.checked ? without(state.hide, key) : [...state.hide, key] }, boxOf("show", key)),
    });
    const text = isPinned ? "unpin" : "pin";
    const pin = quiet(
      text,
      () => arrange({ pin: isPinned ? without(state.pin, key) : [...state.pin, key] }, boxOf("pin", key)),
      { "data-pin": key, "aria-label": `${text} ${taskOf(column.task)}: ${nameOf(column)}` },
    );
    pin.classList.toggle("pinned", isPinned);
    return el("li", el("label.choice", show, " ", quote(nameOf(column))), pin);
  }

  /** Arrange the columns, and give the focus to what then stands where it was. */
  function arrange(changes, focused) {
    addEventListener("hashchange", () => document.querySelector(focused)?.focus(), { once: true });
    location.replace(forList(changes));
  }

  // Pages

  const within = (text, pages) => Math.min(Math.max(1, Number.parseInt(text, 10) || 1), pages);

  function pager(page, pages, name) {
    if (pages === 1) return "";
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

  function turnPage(by) {
    document.querySelector(`#found .pager a[rel=${by > 0 ? "next" : "prev"}]`)?.click();
  }

  /** The list's address with the page on which a row stands. */
  const forRow = (place) => forList({ page: Math.floor(Math.max(place, 0) / PAGE) + 1 });

  Object.assign(Turinglike, { forRow, list, turnPage });
}
