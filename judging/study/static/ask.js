// The fields in which a participant answers a stimulus.
"use strict";

{
  const { el } = Turinglike;

  function askFields(view, phrase) {
    const field = (name, text, input) => el("div", { class: "field" }, el("label", { for: name }, text), input);
    if (view.asked === "color_estimation") {
      const options = ["", ...view.colors].map((one) => el("option", { value: one }, one ? phrase(`c_${one}`) : "…"));
      return [field("answer", phrase("q_color"), el("select", { id: "answer", name: "answer" }, ...options))];
    }
    if (view.asked === "object_detection") {
      const boxes = [1, 2, 3].map((at) =>
        field(`o${at}`, phrase(`object_${at}`), el("input", { id: `o${at}`, name: `o${at}`, type: "text", maxlength: 60, spellcheck: "true" })),
      );
      return [el("legend", null, phrase("q_objects")), ...boxes];
    }
    if (view.asked === "image_captioning") {
      const area = el("textarea", { id: "answer", name: "answer", rows: 3, maxlength: 1000, spellcheck: "true" });
      return [field("answer", phrase("q_caption"), area)];
    }
    const input = el("input", { id: "answer", name: "answer", type: "text", maxlength: 60, spellcheck: "true" });
    if (!view.examples.length) return [field("answer", phrase("q_word", view), input)];
    const pairs = view.examples.map(([cue, word]) => el("p", null, `${cue} – ${word}`));
    return [el("p", null, phrase("q_prompt")), ...pairs, field("answer", `${view.cue} –`, input)];
  }

  Object.assign(Turinglike, { askFields });
}
