// Pages on which a participant answers a stimulus, or a question of the study's own.
"use strict";

{
  const { el, field, lineOf, quote, record, sentBy, shown } = Turinglike;

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

  /** A page with fields to write in; `answerOf` makes what is sent of their texts, `refused` takes what is told of an
   * answer that the form refuses. `tools` are what the pages share. */
  async function writing(view, tools, { heading, load, fields: parts, answerOf, refused }) {
    const { actions, alarm, off, phrase, send, show, stage, tell } = tools;
    const problem = alarm();
    const submit = el("button", { type: "submit" }, phrase("next"));
    const fields = el("fieldset.all", { disabled: true }, parts);
    const answer = (node) => {
      if (fields.disabled || submit.getAttribute("aria-disabled") === "true") return;
      const texts = [...new FormData(node).values()].map((text) => text.trim());
      if (texts.some(isBlank)) {
        tell(problem, phrase("incomplete"));
        return;
      }
      off(submit);
      const at = performance.now();
      const sent = { answer: answerOf(texts), ...up.times(at), traces: trace.take(texts.join("")) };
      send(view, sent, (reply) => {
        if (reply.told.length && reply.next.step === view.step) {
          trace.giveBack();
          tell(problem, refused(reply.told, at - up.begin));
          off(submit, false);
          return;
        }
        trace.end();
        up.end();
        show(reply.next);
      });
    };
    const form = sentBy(answer, fields, problem, actions(submit));
    const trace = record(view, form);
    const up = await stage(view, heading, load, form);
    if (up === null) return;
    trace.begin(up.begin);
    fields.disabled = false;
    fields.querySelector("input, select, textarea").focus({ preventScroll: true });
  }

  /** What a participant answers: a colour, three objects, a caption or a word. */
  function ask(view, tools) {
    const { phrase, words } = tools;
    const refused = (flags, ms) => {
      const number = Math.max(1, Math.ceil((view.fastest - ms) / 1000));
      const told = (flag) => [phrase(`told_${flag}`), flag === "too_fast" && phrase("told_wait", { number })];
      return flags.flatMap(told).filter(Boolean).join(" ");
    };
    return writing(view, tools, {
      heading: phrase("answer_number", view),
      load: async () => [...(await shown({ ...view, cue: undefined }, words)), lineOf(view)],
      fields: askFields(view, phrase),
      answerOf: (texts) => (view.asked === "object_detection" ? texts : texts[0]),
      refused,
    });
  }

  /** A question of the study's own, beside what the study is about. */
  function check(view, tools) {
    const input = el("input", { id: "answer", name: "answer", type: "text", maxlength: 200 });
    return writing(view, tools, {
      heading: tools.phrase("check_title"),
      load: async () => [],
      fields: [field("answer", quote(view.text), input)],
      answerOf: ([text]) => text,
    });
  }

  Object.assign(Turinglike, { ask, check, countWords, isBlank });
}
