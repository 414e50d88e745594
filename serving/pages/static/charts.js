// Charts: a figure's drawing with its title, all of its figures in a table, and a button that saves it.
"use strict";

{
  const { el, lazily, note, quiet, PLOT_WIDTH, PLOTS, quote, svg, TASKS } = Turinglike;

  const narrow = matchMedia("(max-width: 40rem)");
  const BESIDE = 68; // pixels of a phone's screen that are no drawing's
  const width = () => (narrow.matches ? Math.max(280, Math.min(PLOT_WIDTH, innerWidth - BESIDE)) : PLOT_WIDTH);

  narrow.addEventListener("change", () => {
    for (const drawing of document.querySelectorAll("svg.chart")) drawing.dispatchEvent(new Event("redraw"));
  });

  /** A figure of the index as an element: title, drawing, note, table, a button that saves it. On a phone it is drawn
   * as wide as the screen, so that nothing of it is out of sight and its words can be read. */
  function chart(figure) {
    const plot = (whole) => PLOTS[figure.kind](figure, whole);
    const { table } = plot(PLOT_WIDTH);
    const label = `${TASKS[figure.task] ?? figure.task}: ${figure.title}`;
    const title = `${figure.title}: its figures are in the table below`;
    const drawing = svg("svg.chart", { role: "img", "aria-label": title });
    const draw = () => {
      const { parts, height } = plot(width());
      drawing.setAttribute("viewBox", `0 0 ${width()} ${height}`);
      drawing.replaceChildren(svg("g", parts));
    };
    draw();
    drawing.addEventListener("redraw", draw);
    const save = quiet("Save as SVG", () => saved(drawing, figure.title));
    const inTable = lazily("As a table", () => tabled(`${label}, as a table`, table));
    return el(
      "figure.chart",
      el("h3", el("span", figure.title), save),
      el("div.wide", { tabindex: 0, role: "region", "aria-label": label }, drawing),
      el("figcaption", figure.note && note(figure.note), inTable),
    );
  }

  /** As `tables.html`: a row of names, then rows that begin with a name. Roles are said, as a table of blocks has none. */
  function tabled(label, [head, ...rows]) {
    const cell = (text, at) => el("td", { role: "cell", "data-column": head[at + 1] }, quote(text));
    const column = (name) => name && el("th", { scope: "col", role: "columnheader" }, quote(name));
    const row = (...cells) => el("tr", { role: "row" }, cells);
    const named = (name) => el("th", { scope: "row", role: "rowheader" }, quote(name));
    const heads = head.map((name) => column(name) || el("td", { role: "cell" }));
    const body = rows.map(([name, ...cells]) => row(named(name), cells.map(cell)));
    const parts = [el("thead", { role: "rowgroup" }, row(heads)), el("tbody", { role: "rowgroup" }, body)];
    return el("div.wide", { tabindex: 0, role: "region", "aria-label": label }, el("table", { role: "table" }, parts));
  }

  function saved(drawing, title) {
    const copy = drawing.cloneNode(true);
    const [, , width, height] = drawing.getAttribute("viewBox").split(" ");
    copy.setAttribute("color", "#1d1c1a");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.removeAttribute("class");
    copy.prepend(svg("rect", { width: "100%", height: "100%", fill: "#fff" }));
    const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    el("a", { href: url, download: `${title.replace(/[^\w ]/g, "")}.svg` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  Object.assign(Turinglike, { chart, tabled });
}
