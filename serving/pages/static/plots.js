// Figures of the index drawn as SVG. Colours are attributes, not styles, so that a saved file looks as the page does.
"use strict";

{
  const { svg, WORDS } = Turinglike;
  const INK = "currentColor";
  const SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7b5ea7"];
  const PEOPLE = "people";
  const LETTER = 7.3; // pixels of a letter at 12 pixels, about
  const WIDTH = 720; // pixels of a drawing; on a phone those that the screen has
  const ONE_PANEL = 480; // pixels below which panels stand below each other
  const DARK = ["black", "blue", "brown", "purple", "green", "red"]; // colours under white letters
  /** Pixels for names of rows, at most. */
  const namesIn = (width) => Math.min(170, 0.34 * width);

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
  const named = (x, y, name, pixels, more = {}) => text(x, y, [cut(name, pixels), svg("title", name)], more);
  const colourOf = (names, at) => {
    if (names[at] === PEOPLE) return INK;
    return SERIES[(at - (names[0] === PEOPLE ? 1 : 0)) % SERIES.length];
  };
  const interval = (cell, form) => {
    if (!cell) return "–";
    const [value, low, high] = cell;
    return low === null || low === undefined ? form(value) : `${form(value)} (${form(low)} to ${form(high)})`;
  };

  const line = (x1, y1, x2, y2, more) => svg("line", { x1, y1, x2, y2, stroke: INK, ...more });
  /** What is beside the names of rows: the pixels to their right. */
  const beside = (rows, most) => Math.min(most, Math.max(...rows.map((name) => name.length)) * LETTER + 12);
  const rowName = (name, left, y) => named(left - 8, y, name, left - 12, { "text-anchor": "end" });
  const isNumber = (value) => value !== null && value !== undefined;

  /** Means with intervals, one panel for each number and one row for each agent; people's mean is a line. */
  function panels({ rows, panels: all }, whole) {
    const most = whole < ONE_PANEL ? 1 : all.some(({ title }) => title.length > 20) ? 2 : 3;
    const across = Math.min(all.length, most);
    const left = beside(rows, namesIn(whole));
    const gap = 30;
    const hasDelta = ({ delta }) => delta.some(isNumber);
    const room = all.some(hasDelta) ? 42 : 0; // pixels for the deltas
    const width = (whole - left - gap * across) / across - room;
    const tall = rows.length * 20 + 58;
    const panel = ({ title, values, delta }, number) => {
      const x0 = left + (number % across) * (width + room + gap) + gap / 2;
      const y0 = Math.floor(number / across) * tall;
      const cells = values.filter(isNumber);
      const scale = scaled(
        cells.flatMap((cell) => cell.slice(0, 3).filter(isNumber)),
        width,
      );
      const upright = (value, more) => line(x0 + scale.at(value), y0 + 22, x0 + scale.at(value), y0 + tall - 32, more);
      const small = { "text-anchor": "end", "font-size": 10, "fill-opacity": 0.75 };
      const row = (name, at) => {
        const y = y0 + 34 + at * 20;
        const cell = values[at];
        return [
          number % across === 0 && rowName(name, left, y + 4),
          cell && name === PEOPLE && upright(cell[0], { "stroke-dasharray": "3 3" }),
          cell && bar(x0, y, scale, cell, colourOf(rows, at)),
          cell && isNumber(delta[at]) && text(x0 + width + room, y + 4, `δ ${delta[at].toFixed(2)}`, small),
        ];
      };
      const tick = (value) => [
        upright(value, { "stroke-opacity": 0.15 }),
        text(x0 + scale.at(value), y0 + tall - 18, short(value), { "text-anchor": "middle", "font-size": 11 }),
      ];
      const isNarrow = whole < ONE_PANEL; // the title then has the place above the names of rows, too
      const heading = named(isNarrow ? 8 : x0, y0 + 14, title, isNarrow ? whole : width + room, { "font-weight": 600 });
      return [heading, scale.ticks.map(tick), rows.map(row)];
    };
    const head = all.flatMap((each) => [each.title, ...(hasDelta(each) ? ["δ"] : [])]);
    const body = rows.map((name, at) => {
      const deltas = (each) => (hasDelta(each) ? [each.delta[at]?.toFixed(2) ?? "–"] : []);
      const amount = all.map(({ values }) => values[at]?.[3]).find((number) => number) ?? 0;
      return [name, ...all.flatMap((each) => [interval(each.values[at], short), ...deltas(each)]), short(amount)];
    });
    const table = [["", ...head, "number"], ...body];
    return { parts: all.map(panel), height: tall * Math.ceil(all.length / across), table };
  }

  function bar(x0, y, scale, [value, low, high, number], stroke) {
    const title = `${interval([value, low, high], short)}, of ${short(number ?? 0)}`;
    const ends = [low, high].map((end) => x0 + scale.at(end));
    return svg(
      "g",
      svg("title", title),
      isNumber(low) && line(ends[0], y, ends[1], y, { stroke, "stroke-width": 2 }),
      svg("circle", { cx: x0 + scale.at(value), cy: y, r: 4.5, fill: stroke }),
    );
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
    const step = [1, 2, 5, 10, 20, 50].map((size) => size * unit).find((size) => last(size) - first(size) < 4);
    const ticks = [];
    for (let tick = first(step); tick <= last(step); tick += 1) ticks.push(Number((tick * step).toPrecision(10)));
    return { ticks, at: (value) => ((value - low) / (high - low)) * width };
  }

  /** Shares that add up to one, a bar for each row, in the colours that they are the names of. */
  function stacks({ rows, columns, values }, whole) {
    const left = beside(rows, namesIn(whole));
    const width = whole - left - 10;
    const fill = (name) => (WORDS.includes(name) ? name : "#8884");
    const edge = { stroke: INK, "stroke-opacity": 0.4 };
    const ink = (name) => (name === "other words" ? INK : DARK.includes(name) ? "#fff" : "#000");
    const bars = rows.map((name, at) => {
      const y = at * 28 + 6;
      let end = left;
      const shares = values[at].map((cell, column) => {
        const [share, , , number] = cell;
        if (share === 0) return null;
        const x = end;
        end += share * width;
        const place = { x, y, width: Math.max(share * width, 0.5), height: 22, fill: fill(columns[column]) };
        const title = `${columns[column]}: ${interval(cell, percent)}, of ${number}`;
        const look = { "text-anchor": "middle", "font-size": 11, fill: ink(columns[column]) };
        return [
          svg("rect", { ...place, ...edge, "stroke-width": 0.7 }, svg("title", title)),
          share * width > 34 && text(x + (share * width) / 2, y + 15, percent(share), look),
        ];
      });
      return [rowName(name, left, y + 15), shares];
    });
    let [x, y] = [left, rows.length * 28 + 18];
    const used = columns.filter((_, column) => values.some((row) => row[column][0] > 0));
    const legend = used.map((name) => {
      const wide = 22 + name.length * 6.6;
      if (x + wide > whole) [x, y] = [left, y + 18];
      x += wide;
      const square = { x: x - wide, y, width: 11, height: 11, fill: fill(name), ...edge };
      return [svg("rect", square), text(x - wide + 14, y + 10, name, { "font-size": 11 })];
    });
    const table = rows.map((name, at) => [name, ...values[at].map((cell) => interval(cell, percent))]);
    return { parts: [bars, legend], height: y + 20, table: [["", ...columns], ...table] };
  }

  /** A table of shares, the larger the darker; a cell's title has its interval. */
  function matrix({ rows, columns, values }, whole) {
    const left = beside(rows, 1.24 * namesIn(whole));
    const tall = 24;
    const most = Math.min(110, 0.25 * whole); // pixels for names of columns
    const longest = Math.min(most, Math.max(...columns.map((name) => name.length)) * LETTER);
    const level = Math.min(74, (whole - left) / columns.length);
    const isSteep = columns.some((name) => name.length * LETTER > level - 4);
    const side = isSteep ? Math.min(74, (whole - left - 0.75 * longest) / columns.length) : level; // the last leans out
    const top = isSteep ? longest * 0.75 + 14 : 20;
    const heads = columns.map((name, column) => {
      const [x, y] = [left + (column + 0.5) * side, top - 6];
      const way = isSteep ? { transform: `rotate(-45 ${x} ${y})` } : { "text-anchor": "middle" };
      return named(x, y, name, isSteep ? most : side, way);
    });
    const largest = Math.max(0.01, ...values.flat().map((cell) => cell?.[0] ?? 0));
    const drawn = (cell, row, column) => {
      if (!cell) return null;
      const strength = cell[0] / Math.max(largest, largest > 0.3 ? 1 : 0);
      const title = `${rows[row]}, ${columns[column]}: ${interval(cell, percent)}, of ${cell[3]}`;
      const [x, y] = [left + column * side, top + row * tall];
      const place = { x: x + 1, y: y + 1, width: side - 2, height: tall - 2, fill: "#0072b2" };
      const look = { "text-anchor": "middle", "font-size": 11, fill: strength > 0.75 ? "#fff" : INK };
      return svg(
        "g",
        svg("title", title),
        svg("rect", { ...place, "fill-opacity": (0.06 + 0.94 * strength).toFixed(3) }),
        side > 30 && text(x + side / 2, y + 16, percent(cell[0]), look),
      );
    };
    const body = rows.map((name, row) => [
      rowName(name, left, top + row * tall + 16),
      values[row].map((cell, column) => drawn(cell, row, column)),
    ]);
    const figures = (cell) => (cell ? `${interval(cell, percent)}, n = ${cell[3]}` : "–");
    const table = [["", ...columns], ...rows.map((name, row) => [name, ...values[row].map(figures)])];
    return { parts: [heads, body], height: top + rows.length * tall + 6, table };
  }

  const PLOTS = { panels, stacks, matrix };

  Object.assign(Turinglike, { percent, PLOT_WIDTH: WIDTH, PLOTS });
}
