// The fields in which a participant answers a stimulus.
"use strict";

{
  const { el, field } = Turinglike;

  /** Whether a text shows nothing: is of blanks and invisible characters alone, as the server sees it. */
  const isBlank = (text) => !/[^\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Z}]/u.test(text);

  const LETTER = "(?![\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}ー])[\\p{L}\\p{N}]\\p{M}*";
  const JOINT = `['’\\-‐‑](?=${LETTER})|(?<=\\p{N})[.,:](?=\\p{N})`;
  const WORD = new RegExp(`(?:${LETTER})(?:${LETTER}|${JOINT})*|(?:[\\p{sc=Kana}ー]\\p{M}*)+|[\\p{L}\\p{N}]\\p{M}*`, "gu");

  /** How many words a text has, as the server counts them: between spaces, and each character of Chinese and Japanese. */
  function countWords(text) {
    const inPart = (part) => {
      if (!/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}]/u.test(part)) return 1;
      return part.normalize("NFKC").match(WORD)?.length ?? 1;
    };
    const parts = text.split(/\s+/).filter(Boolean);
    return parts.reduce((sum, part) => sum + inPart(part), 0);
  }

  function askFields(view, phrase) {
    const text = (name) => el("input", { id: name, name, type: "text", maxlength: 60, spellcheck: "true" });
    const examples = view.examples ?? [];
    switch (view.asked) {
      case "color_estimation": {
        const options = ["", ...view.colors].map((name) =>
          el("option", { value: name }, name ? phrase(`c_${name}`) : "…"),
        );
        return [field("answer", phrase("q_color"), el("select", { id: "answer", name: "answer" }, options))];
      }
      case "object_detection":
        return [
          el("legend", phrase("q_objects")),
          ...[1, 2, 3].map((at) => field(`o${at}`, phrase(`object_${at}`), text(`o${at}`))),
        ];
      case "image_captioning": {
        const area = el("textarea", { id: "answer", name: "answer", rows: 3, maxlength: 1000, spellcheck: "true" });
        return [field("answer", phrase("q_caption"), area)];
      }
    }
    if (!examples.length) return [field("answer", phrase("q_word", view), text("answer"))];
    const pairs = examples.map(([cue, word]) => el("p", `${cue} – ${word}`));
    return [el("p", phrase("q_prompt")), ...pairs, field("answer", `${view.cue} –`, text("answer"))];
  }

  Object.assign(Turinglike, { askFields, countWords, isBlank });
}
