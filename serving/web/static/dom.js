// Elements made here. Whatever a model, a person or a file said becomes text and never markup.
"use strict";

globalThis.Turinglike ??= {};

{
  const SVG = "http://www.w3.org/2000/svg";

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") node.addEventListener(name, value);
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  }

  /** An HTML element; a function among the attributes listens to the event of that name. */
  function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  /** An SVG element. */
  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  const SAID = 20_000; // characters of one text that are shown
  const SHOWN = 200_000; // characters of one JSON value

  function cut(text, most) {
    if (text.length <= most) return text;
    return `${text.slice(0, most)}… (${(text.length - most).toLocaleString("en")} more characters)`;
  }

  const byId = (id) => document.getElementById(id);

  /** What somebody said, kept apart from the writing direction of the text around it. */
  const said = (text) => el("bdi", { class: "said" }, cut(String(text), SAID));

  const code = (text) => el("code", null, String(text));
  const small = (...parts) => el("small", null, ...parts);
  const note = (...parts) => el("p", { class: "note" }, ...parts);
  const badge = (text, kind = "") => el("span", { class: `badge ${kind}`.trim() }, text);

  /** A part that is folded away. */
  const folded = (summary, ...body) => el("details", null, el("summary", null, summary), ...body);

  const NUMBERS = /\[\n([-+.\deE,\s]+)\]/g; // a list of numbers over several lines; no string has such line breaks
  const beside = (found, numbers) => `[${numbers.trim().replace(/,\s+/g, ", ")}]`;

  /** Any JSON value in a block of its own, which the keyboard can scroll. */
  function json(value, label) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2).replace(NUMBERS, beside);
    return el("pre", { tabindex: 0, role: "region", "aria-label": label }, cut(text, SHOWN));
  }

  /** A list of (name, part). */
  function pairs(rows) {
    return el(
      "dl",
      null,
      ...rows.map(([name, part]) => el("div", null, el("dt", null, name), " ", el("dd", null, part))),
    );
  }

  const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

  /** A number for an attribute or a list: at most one decimal, kept within what a drawing can hold. */
  function coordinate(value) {
    if (!Number.isFinite(value)) return "0";
    return String(Math.round(Math.max(-1e7, Math.min(1e7, value)) * 10) / 10);
  }

  /** A link as a button; without an address a button that does nothing. */
  function step(href, text, attributes) {
    if (href === null) return el("span", { class: "button quiet", "aria-disabled": "true" }, text);
    return el("a", { class: "button quiet", href, ...attributes }, text);
  }

  Object.assign(Turinglike, { step, el, svg, byId, said, code, small, note, badge, folded, json, pairs, count, coordinate });
}
