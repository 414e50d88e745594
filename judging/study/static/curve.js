// How many had joined, finished, dropped out and were void by when: a line for each, with its own colour and dashes.
"use strict";

{
  const { coordinate, el, lazily, svg } = Turinglike;
  const HEIGHT = 230;
  const EDGE = { top: 20, right: 14, bottom: 26, left: 40 };
  const NAMES = { joined: "joined", finished: "finished", out: "dropped out", void: "void" };
  const DAY = 24 * 3600 * 1000;

  /** A step of 1, 2 or 5 times a power of ten, so that at most `parts` of them make `most`; at least 1. */
  function niceStep(most, parts) {
    const power = 10 ** Math.floor(Math.log10(Math.max(1, most / parts)));
    return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step * parts >= most);
  }

  function time(ms, span) {
    const clock = { hour: "2-digit", minute: "2-digit", ...(span < DAY / 144 ? { second: "2-digit" } : {}) };
    return new Date(ms).toLocaleString("en-GB", span < 1.5 * DAY ? clock : { day: "numeric", month: "short" });
  }

  /** The drawing, `width` pixels wide, from the first event to `until`; `wanted` is a line where it is near. */
  function drawing(curve, names, until, wanted, width) {
    const times = curve.at.map((at) => Date.parse(at));
    const begin = times[0];
    const span = Math.max(until - begin, 60_000);
    const most = Math.max(1, ...names.map((name) => curve[name].at(-1)));
    const isNear = wanted && wanted <= 2 * most;
    const step = niceStep(isNear ? Math.max(most, wanted) : most, 5);
    const top = step * Math.ceil((isNear ? Math.max(most, wanted) : most) / step);
    const x = (ms) => coordinate(EDGE.left + ((ms - begin) / span) * (width - EDGE.left - EDGE.right));
    const y = (number) => coordinate(HEIGHT - EDGE.bottom - (number / top) * (HEIGHT - EDGE.top - EDGE.bottom));
    const parts = [];
    for (let number = 0; number <= top; number += step) {
      const place = y(number);
      parts.push(svg("line.grid", { x1: EDGE.left, x2: width - EDGE.right, y1: place, y2: place }));
      parts.push(svg("text", { x: EDGE.left - 6, y: Number(place) + 4, "text-anchor": "end" }, number.toLocaleString("en")));
    }
    const ticks = Math.max(2, Math.min(6, Math.floor(width / 130)));
    for (let at = 0; at < ticks; at++) {
      const ms = begin + (span * at) / (ticks - 1);
      const anchor = at === 0 ? "start" : at === ticks - 1 ? "end" : "middle";
      parts.push(svg("text", { x: x(ms), y: HEIGHT - 6, "text-anchor": anchor }, time(ms, span)));
    }
    if (isNear) {
      parts.push(svg("line.wanted", { x1: EDGE.left, x2: width - EDGE.right, y1: y(wanted), y2: y(wanted) }));
      parts.push(svg("text", { x: width - EDGE.right, y: Number(y(wanted)) - 4, "text-anchor": "end" }, `${wanted.toLocaleString("en")} wanted`));
    }
    for (const name of [...names].reverse()) {
      let path = `M${x(begin)} ${y(0)}`;
      curve[name].forEach((number, at) => (path += `H${x(times[at])}V${y(number)}`));
      parts.push(svg(`path.series.${name}`, { d: `${path}H${x(begin + span)}` }));
    }
    const about = names.map((name) => `${curve[name].at(-1)} ${NAMES[name]}`).join(", ");
    const box = { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": `Over time: ${about}` };
    return svg("svg", box, parts);
  }

  /** What each line is, and how many there are now. */
  function keys(curve, names) {
    const sample = (name) => svg("svg", { viewBox: "0 0 38 12", "aria-hidden": "true" }, svg(`path.series.${name}`, { d: "M0 6H38" }));
    return el("ul.keys", names.map((name) => el("li", sample(name), `${NAMES[name]} `, el("strong", curve[name].at(-1).toLocaleString("en")))));
  }

  /** The figure of a curve, drawn as wide as its place, and again when that changes. */
  function curveFigure(curve, until, wanted, tabled) {
    if (!curve.at.length) return el("p.note", "Nobody has begun yet.");
    const names = Object.keys(NAMES).filter((name) => curve[name]);
    const place = el("div");
    const draw = () => place.clientWidth && place.replaceChildren(drawing(curve, names, until, wanted, place.clientWidth));
    new ResizeObserver(draw).observe(place);
    const rows = () => curve.at.map((at, number) => [new Date(at).toLocaleString("en-GB"), ...names.map((name) => curve[name][number])]);
    const table = lazily("As a table", () => tabled(["until", ...names.map((name) => NAMES[name])], rows()));
    return el("figure.curve", keys(curve, names), place, table);
  }

  Object.assign(Turinglike, { curveFigure });
}
