// The grid: a table with a row for each picture, cue or talk, and the arrow keys that go from cell to cell.
"use strict";

{
  const { count, el, quote, small } = Turinglike;
  const { TASKS, cell, thumbnail } = Turinglike;
  const { AGREEMENT, PEOPLE, flagsOf, forOne, kindOfRow, kindOfRows, pictureOf, selection, shownColumns, state, stimuliOf } = Turinglike;
  const LONG = ["image_captioning", "conversation", "judgement", "object_detection"]; // tasks with long answers

  /** What a column is called. */
  const nameOf = ({ who }) => ({ [AGREEMENT]: "agreement", [PEOPLE]: "people" })[who] ?? who;
  const taskOf = (task) => TASKS[task] ?? task;

  /** The table of some rows; `entries` are numbers of rows, and names of groups before the first row of each.
   * `at` is the place of the first row among all that are chosen, `sortBy` what a click on a column's name does. */
  function grid(entries, at, sortBy) {
    const { pinned, others } = shownColumns(entries.filter(Number.isInteger));
    const columns = [...pinned, ...others];
    const { all, isHit } = selection();
    const later = [];
    let place = at;
    const body = entries.map((entry) =>
      typeof entry === "number"
        ? line(entry, (place += 1), columns, pinned.length, (draw) => later.push(draw), isHit)
        : groupLine(entry, columns.length + 1),
    );
    const table = el(
      "table",
      { role: "grid", "aria-label": "Answers side by side", "aria-rowcount": all + 2, keydown: move },
      heads(pinned, others, sortBy),
      el("tbody", body),
    );
    const region = { role: "region", "aria-label": "Table of answers", tabindex: 0 };
    const box = el("div.grid", region, table);
    settle(table, pinned.length);
    if (Turinglike.index.size === undefined) drawOneByOne(later); // the records of first rows come with the rest
    return box;
  }

  /** One after the other: each may need a piece of the data of its own. */
  async function drawOneByOne(later) {
    for (const draw of later) await draw();
  }

  function heads(pinned, others, sortBy) {
    const groups = [];
    const add = (task, name, isPinned) => {
      if (isPinned || groups.at(-1)?.task !== task || groups.at(-1).isPinned) groups.push({ task, name, size: 0, isPinned });
      groups.at(-1).size += 1;
    };
    for (const { task } of pinned) add(task, taskOf(task), true);
    for (const { task } of others) add(task, taskOf(task), false);
    const head = ({ name, size, isPinned }) =>
      el(isPinned ? "th.task.pinned" : "th.task", { scope: "colgroup", colspan: size }, el("span", name));
    const what = el("th.first", { scope: "col", "aria-sort": sorted("name") }, sorter("name", kindOfRows(), sortBy));
    return el(
      "thead",
      el("tr", el("td.first"), groups.map(head)),
      el(
        "tr",
        what,
        [...pinned, ...others].map((column, nth) => {
          const attributes = { scope: "col", "aria-sort": sorted(column.key) };
          const label = column.who === AGREEMENT ? "agreement" : quote(nameOf(column));
          const made = el("th", attributes, sorter(column.key, label, sortBy));
          made.classList.add(...columnKinds([...pinned, ...others], pinned.length, nth));
          return made;
        }),
      ),
    );
  }

  const sorted = (key) => ({ [key]: "ascending", [`-${key}`]: "descending" })[state.sort] ?? null;

  function sorter(key, label, sortBy) {
    const mark = { ascending: " ▲", descending: " ▼" }[sorted(key)];
    return el("button.sort", { type: "button", tabindex: -1, "data-key": key, click: () => sortBy(key) }, label, mark && el("span", { "aria-hidden": "true" }, mark));
  }

  /** A file's name, which is rather broken before its ending than within it. */
  function fileName(name) {
    const dot = name.lastIndexOf(".");
    return dot > 0 ? el("bdi.quote", name.slice(0, dot), el("wbr"), name.slice(dot)) : quote(name);
  }

  function line(row, place, columns, pinned, later, isHit) {
    const { stimuli, rows } = Turinglike.index;
    const seen = pictureOf(row);
    const [first] = stimuliOf(row, taskShown());
    const isPicture = kindOfRow(row) === "picture";
    const title = isPicture ? rows[row] : stimuli.title[first] || rows[row];
    const flags = flagsOf(row);
    const href = forOne(first);
    return el(
      "tr",
      { "aria-rowindex": place + 2, "data-row": row },
      el(
        "th.first",
        { scope: "row" },
        seen?.url && el("a", { href, tabindex: -1, "aria-hidden": "true" }, thumbnail(seen)),
        el("a.open", { href, tabindex: -1 }, isPicture ? fileName(title) : quote(title)),
        flags > 0 && el("small.flags", { title: `${count(flags, "answer")} with flags, rejected or failed` }, `⚑ ${flags}`),
      ),
      columns.map((column, nth) => {
        const made = cell(row, column, seen, isHit, later);
        made.classList.add(...columnKinds(columns, pinned, nth));
        return made;
      }),
    );
  }

  /** The classes of a column: how wide it may be, and where a task begins. */
  function columnKinds(columns, pinned, nth) {
    const { task, who } = columns[nth];
    return [
      nth < pinned && "pinned",
      (nth === 0 || nth === pinned || columns[nth - 1].task !== task) && "begins",
      LONG.includes(task) && who !== AGREEMENT && "long",
      who === PEOPLE && "tally",
    ].filter(Boolean);
  }

  const taskShown = () => (state.task === "" ? null : Turinglike.index.tasks.indexOf(state.task));

  const groupLine = ({ name, size, of }, columns) =>
    el(
      "tr.group",
      el("th", { scope: "rowgroup", colspan: columns }, el("span", quote(name), " ", small(`${size} of ${of}`))),
    );

  /** Pinned columns stand beside the first one: where, the browser says once it has laid them out. */
  function settle(table, pinned) {
    requestAnimationFrame(() => {
      const heads = [...(table.rows[1]?.cells ?? [])].slice(0, pinned + 1);
      let left = 0;
      heads.forEach((head, nth) => {
        for (const { cells } of table.rows) if (cells.length > nth) cells[nth].style.left = `${left}px`;
        left += head.getBoundingClientRect().width;
      });
      table.style.setProperty("--heads", `${table.tHead.getBoundingClientRect().height}px`);
      table.style.setProperty("--pinned", `${left}px`); // the width of all that stays where it is
    });
  }

  const targetOf = (box) => box.querySelector("a:not([aria-hidden]), button") ?? box;

  /** One cell at a time can be reached by the tab key, the others by arrows from there. */
  function choose(table, box) {
    for (const other of table.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    targetOf(box).tabIndex = 0;
  }

  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

  function move(event) {
    const box = event.target.closest("th, td");
    if (box === null || event.ctrlKey || event.altKey || event.metaKey) return;
    const { rows } = event.currentTarget;
    const [row, column] = [box.parentNode.rowIndex, box.cellIndex];
    const ends = { Home: [row, 0], End: [row, rows[row].cells.length - 1] };
    const [down, across] = STEPS[event.key] ?? [];
    const [to, at] = ends[event.key] ?? [row + down, column + across];
    const next = rows[to]?.cells[Math.min(at, rows[to].cells.length - 1)];
    if (!Object.hasOwn(ends, event.key) && !Object.hasOwn(STEPS, event.key)) return;
    event.preventDefault(); // also where there is no further cell: the arrows do not leave the grid
    if (to > 0 && next !== undefined) focusOn(next);
  }

  function focusOn(box) {
    choose(box.closest("table"), box);
    targetOf(box).tabIndex = 0;
    targetOf(box).focus();
    box.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Move to the first cell of the row that is so many further than the one with the focus. */
  function moveRow(by) {
    const rows = [...document.querySelectorAll("#found tbody tr:not(.group)")];
    const at = rows.indexOf(document.activeElement.closest("tr"));
    const to = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (to !== undefined) focusOn(to.cells[0]);
  }

  /** Give the focus to a row, if it is on this page. */
  function focusRow(row) {
    const found = document.querySelector(`#found tr[data-row="${row}"]`);
    if (found !== null) focusOn(found.cells[0]);
  }

  /** Put a new grid in the place of an old one: the focus stays in its cell, and what is scrolled stays where it is.
   * Without the focus, the first row's first cell is the one that the tab key reaches. */
  function replaceGrid(holder, children, keepsRows) {
    const old = holder.querySelector(".grid");
    const { scrollLeft = 0, scrollTop = 0 } = old ?? {};
    const focused = old?.contains(document.activeElement) ? document.activeElement.closest("th, td") : null;
    holder.replaceChildren(...children);
    const table = holder.querySelector(".grid table");
    if (table === null) return;
    const first = table.querySelector("tbody tr:not(.group) th");
    if (first !== null) choose(table, first);
    const cell = focused && sameCell(table, focused);
    if (cell) {
      choose(table, cell);
      targetOf(cell).focus({ preventScroll: true });
    }
    table.parentNode.scrollLeft = scrollLeft;
    if (keepsRows) table.parentNode.scrollTop = scrollTop;
  }

  /** The cell that stands where one stood in an old table: in the row of the same picture, or of names. */
  function sameCell(table, { parentNode: { dataset, rowIndex }, cellIndex }) {
    if (dataset.row === undefined) return table.rows[Math.min(rowIndex, 1)].cells[cellIndex];
    return table.querySelector(`tr[data-row="${dataset.row}"]`)?.cells[cellIndex];
  }

  Object.assign(Turinglike, { focusRow, grid, moveRow, nameOf, replaceGrid, taskOf });
}
