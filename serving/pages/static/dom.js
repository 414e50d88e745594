// Elements made here. Whatever a model, a person or a file said becomes text and never markup.
"use strict";

globalThis.Turinglike ??= {};

{
  const SVG = "http://www.w3.org/2000/svg";

  /** Parts are children, at any depth of lists; a plain object before them has the attributes, and a function among
   * these listens to the event of that name. */
  function fill(node, classes, [first, ...others]) {
    const hasAttributes = first?.constructor === Object;
    if (classes.length) node.setAttribute("class", classes.join(" "));
    for (const [name, value] of Object.entries(hasAttributes ? first : {})) {
      if (typeof value === "function") node.addEventListener(name, value);
      else if (!isNothing(value)) node.setAttribute(name, value === true ? "" : String(value));
    }
    const children = hasAttributes ? others : [first, ...others];
    node.append(...children.flat(Infinity).filter((child) => child !== "" && !isNothing(child)));
    return node;
  }

  const isNothing = (value) => value === null || value === undefined || value === false;

  /** An HTML element, by its tag and classes ("p.note"). */
  function el(selector, ...parts) {
    const [tag, ...classes] = selector.split(".");
    return fill(document.createElement(tag), classes, parts);
  }

  /** An SVG element. */
  function svg(selector, ...parts) {
    const [tag, ...classes] = selector.split(".");
    return fill(document.createElementNS(SVG, tag), classes, parts);
  }

  const LONGEST = 20_000; // characters of one text that are shown
  const SHOWN = 200_000; // characters of one JSON value

  function cut(text, most) {
    if (text.length <= most) return text;
    return `${text.slice(0, most)}… (${(text.length - most).toLocaleString("en")} more characters)`;
  }

  const byId = (id) => document.getElementById(id);

  /** What somebody said, kept apart from the writing direction of the text around it. */
  const quote = (text) => el("bdi.quote", cut(String(text), LONGEST));

  const code = (text) => el("code", String(text));
  const small = (...parts) => el("small", parts);
  const note = (...parts) => el("p.note", parts);
  const badge = (text, kind = "") => el("span", { class: `badge ${kind}`.trim() }, text);

  /** A field of a form, with its label. */
  const field = (id, label, input) => el("div.field", el("label", { for: id }, label), input);

  /** A form that goes to `send`, and not to the server by itself. */
  function sentBy(send, ...parts) {
    const submit = (event) => {
      event.preventDefault();
      send(event.currentTarget);
    };
    return el("form", { autocomplete: "off", novalidate: true, submit }, parts);
  }

  /** A plain button. */
  const quiet = (text, click, more) => el("button.quiet", { type: "button", click, ...more }, text);

  /** A button that copies what `read` returns, and beside it whether it did. */
  function copier(name, read) {
    const status = el("span.small", { role: "status" });
    const press = quiet(name, async () => {
      try {
        await navigator.clipboard.writeText(read());
        status.textContent = "Copied.";
      } catch {
        status.textContent = "The browser does not allow it; select the text instead.";
      }
    });
    return [press, status];
  }

  /** The first items of a list, drawn, and how many there are beside them. */
  const firstOf = (items, most, draw) => [
    ...items.slice(0, most).map(draw),
    items.length > most ? el("li", small(`and ${(items.length - most).toLocaleString("en")} more`)) : null,
  ];

  /** A part that is folded away. */
  const folded = (summary, ...body) => el("details", el("summary", summary), body);

  /** A folded part that is made when it is opened for the first time. */
  function lazily(summary, make) {
    const part = folded(summary);
    part.addEventListener("toggle", () => part.open && part.children.length === 1 && part.append(make()));
    return part;
  }

  const NUMBERS = /\[\n([-+.\deE,\s]+)\]/g; // a list of numbers over several lines; no string has such line breaks
  const beside = (match, numbers) => `[${numbers.trim().replace(/,\s+/g, ", ")}]`;

  /** Any JSON value in a block of its own, which the keyboard can scroll. */
  function json(value, label) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2).replace(NUMBERS, beside);
    return el("pre", { tabindex: 0, role: "region", "aria-label": label }, cut(text, SHOWN));
  }

  /** A list of (name, part). */
  function pairs(rows) {
    return el(
      "dl",
      rows.map(([name, part]) => el("div", el("dt", name), " ", el("dd", part))),
    );
  }

  const count = (number, noun, plural = `${noun}s`) => `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;

  /** A number for an attribute or a list: at most one decimal, kept within what a drawing can hold. */
  function coordinate(value) {
    if (!Number.isFinite(value)) return "0";
    return String(Math.round(Math.max(-1e7, Math.min(1e7, value)) * 10) / 10);
  }

  /** A link as a button; without an address a button that does nothing. */
  function step(href, text, attributes) {
    if (href === null) return el("span.button.quiet", { "aria-disabled": "true" }, text);
    return el("a.button.quiet", { href, ...attributes }, text);
  }

  Object.assign(Turinglike, { badge, byId, code, coordinate, copier, count, el, field, firstOf, folded, json, lazily });
  Object.assign(Turinglike, { note, pairs, quiet, quote, sentBy, small, step, svg });
}
