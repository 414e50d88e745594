// What all conversations share: bubbles, and a place to write.
"use strict";

{
  const { el, quote, sentBy } = Turinglike;

  /** A message; those of the reader stand on the right. */
  function bubble(tag, isMine, who, text) {
    const words = el("p.bubble", { dir: "auto" }, quote(text));
    return el(tag, { class: isMine ? "right" : "left" }, el("span.who", who), words);
  }

  /** A message of the reader that no server has yet; `state` says so. */
  function unsentBubble(tag, who, state, text) {
    const node = bubble(tag, true, [who, " · ", state], text);
    node.classList.add("unsent");
    return node;
  }

  /** A place to write, whose text goes to `send`; Enter sends, with Shift it begins a new line. */
  function writer(label, name, send, { hint = "", id = "message", ...attributes } = {}) {
    const area = el("textarea", { id, rows: 3, maxlength: 2000, ...attributes });
    const press = el("button", { type: "submit" }, name);
    const line = el("div.line", press, hint);
    const submit = () => {
      const text = area.value.trim();
      if (text && press.getAttribute("aria-disabled") !== "true") send(text);
    };
    const form = sentBy(submit, el("label", { for: id }, label), area, line);
    form.classList.add("write");
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    const restore = (text) => (area.value = [text, area.value].filter(Boolean).join(" "));
    return { form, area, restore, off: (is) => press.setAttribute("aria-disabled", String(is)) };
  }

  Object.assign(Turinglike, { bubble, unsentBubble, writer });
}
