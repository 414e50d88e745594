// Answers drawn, one way for each task, and the record around them.
"use strict";

{
  const { badge, code, copier, count, el, firstOf, folded, json, note, pairs, quote, small } = Turinglike;
  const { canvas, scanpath, tagged } = Turinglike;

  const TASKS = {
    color_estimation: "Colour estimation",
    object_detection: "Object detection",
    attention_prediction: "Attention prediction",
    image_captioning: "Image captioning",
    word_association: "Word association",
    conversation: "Conversation",
    judgement: "Judgement",
  };
  const WORDS = ["black", "blue", "brown", "gray", "green", "orange", "pink", "purple", "red", "white", "yellow"];
  const LISTED = 100;
  const MESSAGES = 200;

  const DRAW = {
    color_estimation: color,
    object_detection: objects,
    attention_prediction: scanpath,
    image_captioning: caption,
    word_association: word,
    conversation,
    judgement,
  };

  /** A record as a card: its answer over the picture, or why there is none; attempts and particulars folded away.
   * With `name` the picture stands elsewhere. */
  function answer(record, stimulus, picture, name = null) {
    const { status, kind } = record;
    const stands = status !== "failed" && record.answer !== null;
    const said_ = kind === "human" ? "The answer as it stood" : "What the model said";
    return el(
      `article.card.${["ok", "rejected", "failed"].includes(status) ? status : "other"}`,
      el(
        name === null ? "h3" : "h4",
        quote(name ?? record.agent),
        name === null && [" ", small(TASKS[record.task] ?? record.task)],
        record.sample > 0 && [" ", badge(`sample ${record.sample}`)],
        kind === "control" && [" ", badge("control: odd by design", "warn")],
        !["control", "machine", "human"].includes(kind) && [" ", badge(kind)],
      ),
      status === "failed" && failed(record.error),
      status === "rejected" && el("p", badge("rejected", "warn"), " No attempt passed the filters; this is the last."),
      stands && drawn(record.task, record.answer, stimulus, picture),
      status === "failed" && photograph(picture),
      attempts(record.attempts, record.task),
      record.raw !== null && folded(said_, json(record.raw, said_)),
      particulars(record),
    );
  }

  const failed = ({ code: short, message }) =>
    el(
      "div.box-notice.bad",
      el("p", el("strong", "There is no answer: "), quote(message)),
      el("p.small", "Code ", code(short)),
    );

  /** What was answered. An answer that has not the form of its task's answers is shown as the JSON it is. */
  function drawn(task, answer, stimulus, picture) {
    try {
      return DRAW[task](answer, stimulus, picture);
    } catch {
      return [note("This answer does not have the form of its task's answers:"), json(answer, "The answer")];
    }
  }

  /** A few words on an answer, for those who hear the page. */
  function summary(record) {
    const answer = record.answer;
    if (record.status === "failed") return `${record.agent} gave no answer: ${record.error.message}`;
    const words = {
      color_estimation: () => answer.color,
      object_detection: () => answer.labels.slice(0, 3).join(", ") || "no object",
      attention_prediction: () => `a path of ${count(answer.fixations.length, "fixation")}`,
      image_captioning: () => answer.text,
      word_association: () => answer.word,
    }[record.task]();
    const how = record.status === "rejected" ? "had only rejected answers; the last" : "answered";
    return `${record.agent} ${how}: ${words}`;
  }

  const hex = (rgb) => `#${rgb.map((value) => value.toString(16).padStart(2, "0")).join("")}`;

  const swatch = (colour) => coloured("span.swatch", { background: colour });

  /** The colour that an answer names, if it names one. */
  const swatchOf = (task, text) => task === "color_estimation" && WORDS.includes(text) && swatch(text);

  function coloured(selector, style) {
    const mark = el(selector, { "aria-hidden": "true" });
    Object.assign(mark.style, style);
    return mark;
  }

  function photograph(picture) {
    return picture?.url && el("img.photograph", { src: picture.url, alt: "The picture that was asked about" });
  }

  function color(answer, stimulus, picture) {
    const named = answer.rgb ? hex(answer.rgb) : WORDS.includes(answer.color) && answer.color;
    return [
      photograph(picture),
      el(
        "p.word",
        named && swatch(named),
        el("strong", quote(answer.color)),
        answer.css_name && small(" CSS name ", quote(answer.css_name)),
        answer.rgb && small(" ", code(named)),
      ),
      palette(answer),
    ];
  }

  function palette(answer) {
    const full = (answer.palette ?? []).slice(0, LISTED).filter((entry) => entry.population > 0);
    if (!full.length) return answer.palette && note("The palette has no counted pixels.");
    const total = full.reduce((sum, entry) => sum + entry.population, 0);
    const share = (entry) => `${((100 * entry.population) / total).toFixed(1)}%`;
    const colour = ({ rgb }) => [swatch(hex(rgb)), code(hex(rgb))];
    const name = [answer.css_name, answer.color].filter((text) => text).join(", ");
    const isNamed = ({ rgb }) => answer.rgb && hex(rgb) === hex(answer.rgb);
    const label = `Palette: ${full.map((entry) => `${hex(entry.rgb)} ${share(entry)}`).join(", ")}`;
    const bar = full.map(({ rgb, population }) => coloured("span", { background: hex(rgb), flexGrow: population }));
    const rows = full.map((entry) =>
      el("li", colour(entry), ` ${share(entry)}`, isNamed(entry) && [" ", el("strong", name)]),
    );
    const biggest = full.reduce((most, entry) => (entry.population > most.population ? entry : most));
    const isOther = biggest.population > full[0].population;
    const alone = () => [
      "By population alone the first colour would be ",
      colour(biggest),
      `: ${share(biggest)} of the pixels.`,
    ];
    return [el("div.bar", { role: "img", "aria-label": label }, bar), el("ol.legend", rows), isOther && note(alone())];
  }

  function objects(answer, stimulus, picture) {
    const score = (at) => (answer.scores?.[at] === undefined ? "" : ` ${answer.scores[at].toFixed(2)}`);
    const rows = firstOf(answer.labels, LISTED, (label, at) => el("li", quote(label), small(score(at))));
    const list = answer.labels.length ? el("ol.labels", rows) : note("No object was found.");
    if (!answer.boxes?.length || !picture?.width) return [photograph(picture), list];
    const size = Math.max(picture.width, picture.height) / 26;
    const shapes = answer.boxes
      .slice(0, LISTED)
      .map((box, at) => tagged(box, (answer.labels[at] ?? "").slice(0, 40) + score(at), size));
    const label = `The picture with boxes around: ${answer.labels.slice(0, 10).join(", ")}`;
    return [canvas(picture, [picture.width, picture.height], label, {}, shapes), list];
  }

  function caption(answer, stimulus, picture) {
    const facts = [
      Number.isFinite(answer.tokens) && count(answer.tokens, "token"),
      Number.isFinite(answer.score) && `score ${answer.score.toFixed(3)}`,
      answer.finish && `finished by ${answer.finish}`,
    ].filter((fact) => fact);
    const flags = answer.flags.slice(0, LISTED).map((flag) => [" ", badge(flag, "warn")]);
    return [
      photograph(picture),
      el("blockquote", { dir: "auto" }, quote(answer.text)),
      el("p.small", facts.join(" · "), flags),
    ];
  }

  function word({ word: best, candidates, skipped, by_rules: byRules }) {
    const passed = ({ word: other, rule }) => el("li", quote(other), " ", small(rule));
    const list = (title, tag, items, item) =>
      items.length > 0 && [el("p.small", title), el(tag, firstOf(items, LISTED, item))];
    return [
      el("p.word", el("strong", quote(best))),
      byRules && el("p.small", "By the papers' rules: ", byRules.word ? quote(byRules.word) : `left out (${byRules.rule})`),
      list("Candidates, best first", "ol.words", candidates ?? [], (text) => el("li", quote(text))),
      list("Passed over, and the rule that said so", "ul.words", skipped, passed),
    ];
  }

  function conversation(answer) {
    return [
      answer.pseudo?.length > 0 && pseudo(answer.pseudo),
      chat(answer.messages, answer.withdrawn ?? []),
      answer.ended_early && note("The conversation ended early."),
    ];
  }

  /** What an agent wrote itself beforehand, topic by topic. */
  function pseudo(written) {
    const parts = [];
    for (const message of written.slice(0, MESSAGES)) {
      if (parts.at(-1)?.topic !== message.topic) parts.push({ topic: message.topic, messages: [] });
      parts.at(-1).messages.push({ ...message, agent: null });
    }
    return el(
      "details.pseudo",
      el("summary", `Before it, ${count(written.length, "message")} that `, quote(written[0].agent), " wrote itself"),
      parts.flatMap(({ topic, messages }) => [el("h4", quote(topic)), chat(messages)]),
      written.length > MESSAGES && note(`${count(written.length - MESSAGES, "more message")}.`),
    );
  }

  /** Whether a message's time is a delay that was drawn for a machine, and not a person's. */
  const isDrawn = ({ agent }) => Boolean(agent) && !/^human(:|$)/.test(agent);

  /** Messages as bubbles: the first speaker on the left, the others on the right; who speaks is said once a burst.
   * What was withdrawn stands where it was. `about` gives a text on a message, which stands beside its speaker; or "". */
  function chat(messages, withdrawn = [], about = () => "") {
    if (!messages.length && !withdrawn.length) return note("No message was said.");
    const first = (messages[0] ?? withdrawn[0]).speaker;
    const all = messages.slice(0, MESSAGES).flatMap((message, at) => [...unsent(at), message]);
    const rest = messages.length - MESSAGES;
    if (rest <= 0) all.push(...unsent(messages.length));
    const why = { ended: "not sent: it ended", interrupted: "withdrawn: interrupted" };
    const rows = all.map((message, at) => {
      const isMore = at > 0 && all[at - 1].speaker === message.speaker;
      const who = el(
        "span.who",
        !isMore && quote(message.speaker),
        !isMore && message.agent && [" ", small(quote(message.agent))],
        Number.isFinite(message.at) && [" ", small(`at ${message.at.toFixed(1)} s`, isDrawn(message) && ", drawn")],
        message.why && [" ", small(why[message.why] ?? why.interrupted)],
        about(message) && [isMore ? "" : " · ", about(message)],
      );
      const side = message.speaker === first ? "left" : "right";
      const kind = `li.${side}${isMore ? ".more" : ""}${message.why ? ".unsent" : ""}`;
      return el(kind, who, el("p.bubble", { dir: "auto" }, quote(message.text)));
    });
    if (rest > 0) rows.push(el("li", small(`and ${count(rest, "more message")}`)));
    return el("ol.chat", { tabindex: 0, "aria-label": "Messages" }, rows);

    function unsent(turn) {
      return withdrawn.filter((message) => message.turn === turn);
    }
  }

  function judgement({ verdict, confidence, reason }) {
    const sure = Number.isFinite(confidence) && small(` confidence ${confidence.toFixed(2)}`);
    return [el("p.word", el("strong", quote(verdict)), sure), reason && el("p", quote(reason))];
  }

  /** Rejected attempts, and apart from them those that stand and about which filters only noted something. */
  function attempts(all, task) {
    const isNoted = ({ verdicts }) => verdicts.length > 0 && !verdicts.some((verdict) => verdict.rejected);
    const verdict = ({ filter, found: reason }) => [code(filter), ": ", quote(reason), " "];
    const row = ({ turn, verdicts, answer: text }) =>
      el("li", Number.isInteger(turn) && `turn ${turn}: `, verdicts.map(verdict), attempted(text, turn, task));
    const part = (listed, name, names) =>
      listed.length > 0 && folded(count(listed.length, name, names), el("ol", firstOf(listed, 20, row)));
    const noted = "that filters noted something in";
    return [
      part(
        all.filter((attempt) => !isNoted(attempt)),
        "rejected attempt",
      ),
      part(all.filter(isNoted), `attempt ${noted}`, `attempts ${noted}`),
    ];
  }

  function attempted(answer, turn, task) {
    if (answer === null) return note("nothing");
    if (Number.isInteger(turn)) return el("blockquote", { dir: "auto" }, quote(answer.text ?? ""));
    return drawn(task, answer, {}, null);
  }

  function particulars(record) {
    const rows = [
      ["stimulus", code(record.stimulus)],
      ["seed", code(record.seed)],
      ["made", quote(record.created)],
      ["digest", code(record.provenance.digest)],
    ];
    if (record.provenance.checkpoint) rows.push(["checkpoint", code(record.provenance.checkpoint)]);
    if (record.provenance.revision) rows.push(["revision", code(record.provenance.revision)]);
    for (const name of ["timing", "worker"]) {
      const about = Object.entries(record[name] ?? {}).map(([key, value]) => `${key.replace("_", " ")} ${value}`);
      if (about.length) rows.push([name, quote(about.join(", "))]);
    }
    return folded("Particulars", pairs(rows));
  }

  /** The record as JSON, and a button that copies it as the line it is in a file of records. */
  const recorded = (record, line) =>
    el(
      "section.record",
      el("div.line", copier("Copy the record, as one line", () => line)),
      json(record, `The record of ${record.agent} and ${record.stimulus}, as JSON`),
    );

  Object.assign(Turinglike, { TASKS, WORDS, answer, chat, recorded, summary, swatch, swatchOf });
}
