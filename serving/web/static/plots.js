// Figures of the index drawn as SVG. Colours are attributes, not styles, so that a saved file looks as the page does.
"use strict";

{
  const { svg, WORDS } = Turinglike;
  const INK = "currentColor";
  const SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7b5ea7"];
  const PEOPLE = "people";
  const LETTER = 7.3; // pixels of a letter at 12 pixels, about
  const WIDTH = 720;
  const NAMED = 170; // pixels for names of rows, at most

  const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
  const short = (value) =>
    Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  const text = (x, y, said_, more = {}) =>
    svg("text", { x, y, fill: INK, "font-size": 12, "font-family": "system-ui, sans-serif", ...more }, said_);
  const cut = (name, pixels) => {
    const letters = Math.max(4, Math.floor(pixels / LETTER + 0.5));
    return name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
  };
  /** A name that may have been cut; the whole of it is its title. */
  const named = (x, y, name, pixels, more = {}) => {
    const shown = text(x, y, cut(name, pixels), more);
    shown.append(svg("title", name));
    return shown;
  };
  const colourOf = (names, at) => {
    if (names[at] === PEOPLE) return INK;
    return SERIES[(at - (names[0] === PEOPLE ? 1 : 0)) % SERIES.length];
  };
  const interval = (cell, form) => {
    if (!cell) return "–";
    const [value, low, high] = cell;
    return low === null || low === undefined ? form(value) : `${form(value)} (${form(low)} to ${form(high)})`;
  };

  /** Means with intervals, one panel for each number and one row for each agent; people's mean is a line. */
  function panels({ rows, panels: some }) {
    const across = Math.min(some.length, some.some(({ title }) => title.length > 20) ? 2 : 3);
    const left = Math.min(NAMED, Math.max(...rows.map((name) => name.length)) * LETTER + 12);
    const gap = 30;
    const hasDelta = some.some(({ delta }) => delta.some((one) => one !== null));
    const beside = hasDelta ? 42 : 0; // pixels for the deltas
    const width = (WIDTH - left - gap * across) / across - beside;
    const tall = rows.length * 20 + 58;
    const parts = [];
    some.forEach((panel, number) => {
      const [x0, y0] = [
        left + (number % across) * (width + beside + gap) + gap / 2,
        Math.floor(number / across) * tall,
      ];
      const values = panel.values
        .filter((one) => one)
        .flatMap((one) => one.slice(0, 3).filter((value) => value !== null));
      const scale = scaled(values, width);
      parts.push(named(x0, y0 + 14, panel.title, width + beside, { "font-weight": 600 }));
      for (const tick of scale.ticks) {
        const x = x0 + scale.at(tick);
        parts.push(svg("line", { x1: x, x2: x, y1: y0 + 22, y2: y0 + tall - 32, stroke: INK, "stroke-opacity": 0.15 }));
        parts.push(text(x, y0 + tall - 18, short(tick), { "text-anchor": "middle", "font-size": 11 }));
      }
      rows.forEach((name, at) => {
        const y = y0 + 34 + at * 20;
        if (number % across === 0) parts.push(named(left - 8, y + 4, name, left - 12, { "text-anchor": "end" }));
        const cell = panel.values[at];
        if (!cell) return;
        const colour = colourOf(rows, at);
        if (name === PEOPLE) {
          const x = x0 + scale.at(cell[0]);
          parts.push(
            svg("line", { x1: x, x2: x, y1: y0 + 22, y2: y0 + tall - 32, stroke: INK, "stroke-dasharray": "3 3" }),
          );
        }
        parts.push(bar(x0, y, scale, cell, colour));
        const delta = panel.delta?.[at];
        if (delta !== null && delta !== undefined)
          parts.push(
            text(x0 + width + beside, y + 4, `δ ${delta.toFixed(2)}`, {
              "text-anchor": "end",
              "font-size": 10,
              "fill-opacity": 0.75,
            }),
          );
      });
    });
    const table = [
      ["", ...some.flatMap((one) => [one.title, ...(one.delta.some((d) => d !== null) ? ["δ"] : [])]), "number"],
    ];
    rows.forEach((name, at) => {
      const cells = some.flatMap((one) => [
        interval(one.values[at], short),
        ...(one.delta.some((d) => d !== null) ? [one.delta[at] === null ? "–" : one.delta[at].toFixed(2)] : []),
      ]);
      table.push([name, ...cells, short(some.map((one) => one.values[at]?.[3]).find((n) => n) ?? 0)]);
    });
    return { parts, height: tall * Math.ceil(some.length / across), table };
  }

  function bar(x0, y, scale, [value, low, high, number], colour) {
    const group = svg("g", svg("title", `${interval([value, low, high], short)}, of ${short(number ?? 0)}`));
    if (low !== null && low !== undefined)
      group.append(
        svg("line", {
          x1: x0 + scale.at(low),
          x2: x0 + scale.at(high),
          y1: y,
          y2: y,
          stroke: colour,
          "stroke-width": 2,
        }),
      );
    group.append(svg("circle", { cx: x0 + scale.at(value), cy: y, r: 4.5, fill: colour }));
    return group;
  }

  /** Where values stand on so many pixels, with a few round ticks. */
  function scaled(values, width) {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (!Number.isFinite(low)) [low, high] = [0, 1];
    if (low >= 0 && low < high * 0.5) low = 0;
    if (low === high)
      [low, high] = [low === 0 ? 0 : low - Math.abs(low) / 10, high === 0 ? 1 : high + Math.abs(high) / 10];
    const unit = 10 ** (Math.floor(Math.log10(high - low)) - 1);
    const first = (step) => Math.ceil(low / step - 1e-9);
    const last = (step) => Math.floor(high / step + 1e-9);
    const step = [1, 2, 5, 10, 20, 50].map((one) => one * unit).find((one) => last(one) - first(one) < 4);
    const ticks = [];
    for (let tick = first(step); tick <= last(step); tick += 1) ticks.push(Number((tick * step).toPrecision(10)));
    return { ticks, at: (value) => ((value - low) / (high - low)) * width };
  }

  /** Shares that add up to one, a bar for each row, in the colours that they are the names of. */
  function stacks({ rows, columns, values }) {
    const left = Math.min(NAMED, Math.max(...rows.map((name) => name.length)) * LETTER + 12);
    const width = WIDTH - left - 10;
    const parts = [];
    const fill = (name) => (WORDS.includes(name) ? name : "#8884");
    rows.forEach((name, at) => {
      const y = at * 28 + 6;
      parts.push(named(left - 8, y + 15, name, left - 12, { "text-anchor": "end" }));
      let x = left;
      values[at].forEach(([share, low, high, number], column) => {
        if (share === 0) return;
        const part = svg("rect", {
          x,
          y,
          width: Math.max(share * width, 0.5),
          height: 22,
          fill: fill(columns[column]),
          stroke: INK,
          "stroke-opacity": 0.4,
          "stroke-width": 0.7,
        });
        part.append(svg("title", `${columns[column]}: ${interval([share, low, high], percent)}, of ${number}`));
        parts.push(part);
        if (share * width > 34) {
          const dark = ["black", "blue", "brown", "purple", "green", "red"].includes(columns[column]);
          parts.push(
            text(x + (share * width) / 2, y + 15, percent(share), {
              "text-anchor": "middle",
              "font-size": 11,
              fill: columns[column] === "other words" ? INK : dark ? "#fff" : "#000",
            }),
          );
        }
        x += share * width;
      });
    });
    const used = columns.filter((_, column) => values.some((row) => row[column][0] > 0));
    let [x, y] = [left, rows.length * 28 + 18];
    for (const name of used) {
      const wide = 22 + name.length * 6.6;
      if (x + wide > WIDTH) [x, y] = [left, y + 18];
      parts.push(svg("rect", { x, y, width: 11, height: 11, fill: fill(name), stroke: INK, "stroke-opacity": 0.4 }));
      parts.push(text(x + 14, y + 10, name, { "font-size": 11 }));
      x += wide;
    }
    const table = [
      ["", ...columns],
      ...rows.map((name, at) => [name, ...values[at].map((one) => interval(one, percent))]),
    ];
    return { parts, height: y + 20, table };
  }

  /** A table of shares, the larger the darker; a cell's title has its interval. */
  function matrix({ rows, columns, values }) {
    const left = Math.min(NAMED + 40, Math.max(...rows.map((name) => name.length)) * LETTER + 12);
    const side = Math.min(74, (WIDTH - left) / columns.length);
    const tall = 24;
    const steep = columns.some((name) => name.length * LETTER > side - 4);
    const longest = Math.min(110, Math.max(...columns.map((name) => name.length)) * LETTER);
    const top = steep ? longest * 0.75 + 14 : 20;
    const parts = [];
    columns.forEach((name, column) => {
      const [x, y] = [left + (column + 0.5) * side, top - 6];
      const way = steep ? { transform: `rotate(-45 ${x} ${y})` } : { "text-anchor": "middle" };
      parts.push(named(x, y, name, steep ? 110 : side, way));
    });
    const most = Math.max(0.01, ...values.flat().map((cell) => cell?.[0] ?? 0));
    rows.forEach((name, row) => {
      const y = top + row * tall;
      parts.push(named(left - 8, y + 16, name, left - 12, { "text-anchor": "end" }));
      columns.forEach((_, column) => {
        const cell = values[row][column];
        if (!cell) return;
        const strength = cell[0] / Math.max(most, most > 0.3 ? 1 : 0);
        const part = svg("g", svg("title", `${name}, ${columns[column]}: ${interval(cell, percent)}, of ${cell[3]}`));
        const place = { x: left + column * side + 1, y: y + 1, width: side - 2, height: tall - 2 };
        part.append(svg("rect", { ...place, fill: "#0072b2", "fill-opacity": (0.06 + 0.94 * strength).toFixed(3) }));
        if (side > 30)
          part.append(
            text(left + (column + 0.5) * side, y + 16, percent(cell[0]), {
              "text-anchor": "middle",
              "font-size": 11,
              fill: strength > 0.75 ? "#fff" : INK,
            }),
          );
        parts.push(part);
      });
    });
    const table = [
      ["", ...columns],
      ...rows.map((name, at) => [
        name,
        ...values[at].map((one) => (one ? `${interval(one, percent)}, n = ${one[3]}` : "–")),
      ]),
    ];
    return { parts, height: top + rows.length * tall + 6, table };
  }

  const PLOTS = { panels, stacks, matrix };

  Object.assign(Turinglike, { percent, PLOT_WIDTH: WIDTH, PLOTS });
}
