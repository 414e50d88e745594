// Answers drawn, one way for each task, and the record around them.
"use strict";

{
  const { badge, canvas, code, count, el, folded, json, note, pairs, said, scanpath, small, tagged } = Turinglike;

  const TASKS = {
    color_estimation: "Colour estimation",
    object_detection: "Object detection",
    attention_prediction: "Attention prediction",
    image_captioning: "Image captioning",
    word_association: "Word association",
    conversation: "Conversation",
    judgement: "Judgement",
  };
  const STATUSES = ["ok", "rejected", "failed"];
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

  /** A record's answer, or how there came to be none, its attempts, and the record itself as `line`. */
  function card(record, line, stimulus, picture) {
    return [answer(record, stimulus, picture), recorded(record, line)];
  }

  /** A record as a card: its answer over the picture, or why there is none; attempts and particulars folded away.
   *
   * With `calm` the drawing stands still, and with `bare` there is none: it stands elsewhere. */
  function answer(record, stimulus, picture, { name = record.agent, calm = false, bare = false } = {}) {
    const shown = [];
    if (record.status === "failed") {
      shown.push(
        el(
          "div",
          { class: "box-notice bad" },
          el("p", null, el("strong", null, "There is no answer: "), said(record.error.message)),
          el("p", { class: "small" }, "Code ", code(record.error.code)),
        ),
      );
    } else if (record.status === "rejected") {
      shown.push(el("p", null, badge("rejected", "warn"), " No attempt passed the filters; this is the last."));
    }
    if (record.status !== "failed" && record.answer !== null)
      shown.push(...drawn(record.task, record.answer, stimulus, bare ? null : picture, calm));
    if (record.status === "failed" && picture?.url && !bare) shown.push(photograph(picture));
    if (record.attempts.length) shown.push(...attempts(record.attempts, record.task));
    if (record.raw !== null) {
      const told = record.kind === "human" ? "The answer as it stood" : "What the model said";
      shown.push(folded(told, json(record.raw, told)));
    }
    shown.push(particulars(record));
    const head = el(bare ? "h4" : "h3", null, said(name), " ");
    if (!bare) head.append(small(TASKS[record.task] ?? record.task));
    if (record.sample > 0) head.append(" ", badge(`sample ${record.sample}`));
    if (record.kind === "control") head.append(" ", badge("control: odd by design", "warn"));
    else if (record.kind !== "machine" && record.kind !== "human") head.append(" ", badge(record.kind));
    return el("article", { class: `card ${STATUSES.includes(record.status) ? record.status : ""}` }, head, ...shown);
  }

  /** What was answered. An answer that has not the form of its task's answers is shown as the JSON it is. */
  function drawn(task, given, stimulus, picture, calm) {
    try {
      return DRAW[task](given, stimulus, picture, calm);
    } catch {
      return [note("This answer does not have the form of its task's answers:"), json(given, "The answer")];
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

  function swatch(color_) {
    const mark = el("span", { class: "swatch", "aria-hidden": "true" });
    mark.style.background = color_;
    return mark;
  }

  function photograph(picture) {
    return picture?.url
      ? el("img", { class: "photograph", src: picture.url, alt: "The picture that was asked about" })
      : null;
  }

  function color(answer, stimulus, picture) {
    const mark = answer.rgb ? swatch(hex(answer.rgb)) : WORDS.includes(answer.color) ? swatch(answer.color) : null;
    const extra = [];
    if (answer.css_name) extra.push(" CSS name ", said(answer.css_name));
    if (answer.rgb) extra.push(" ", code(hex(answer.rgb)));
    return [
      photograph(picture),
      el("p", { class: "word" }, mark, el("strong", null, said(answer.color)), extra.length ? small(...extra) : null),
      ...palette(answer),
    ];
  }

  function palette(answer) {
    const full = (answer.palette ?? []).slice(0, LISTED).filter((entry) => entry.population > 0);
    if (!full.length) return answer.palette ? [note("The palette has no counted pixels.")] : [];
    const total = full.reduce((sum, entry) => sum + entry.population, 0);
    const share = (entry) => `${((100 * entry.population) / total).toFixed(1)}%`;
    const bar = el("div", {
      class: "bar",
      role: "img",
      "aria-label": `Palette: ${full.map((entry) => `${hex(entry.rgb)} ${share(entry)}`).join(", ")}`,
    });
    for (const entry of full) {
      const part = el("span");
      part.style.background = hex(entry.rgb);
      part.style.flexGrow = String(entry.population);
      bar.append(part);
    }
    const rows = full.map((entry) => {
      const named = answer.rgb && hex(entry.rgb) === hex(answer.rgb);
      const name = [answer.css_name, answer.color].filter((one) => one).join(", ");
      return el(
        "li",
        null,
        swatch(hex(entry.rgb)),
        code(hex(entry.rgb)),
        ` ${share(entry)}`,
        named ? [" ", el("strong", null, name)] : null,
      );
    });
    const biggest = full.reduce((most, entry) => (entry.population > most.population ? entry : most));
    const shown = [bar, el("ol", { class: "legend" }, ...rows)];
    if (biggest.population > full[0].population) {
      shown.push(
        note(
          "By population alone the first colour would be ",
          swatch(hex(biggest.rgb)),
          code(hex(biggest.rgb)),
          `: ${share(biggest)} of the pixels.`,
        ),
      );
    }
    return shown;
  }

  function objects(answer, stimulus, picture) {
    const rows = answer.labels.slice(0, LISTED).map((label, at) => {
      const score = answer.scores?.[at];
      return el("li", null, said(label), score === undefined ? null : [" ", small(score.toFixed(2))]);
    });
    if (answer.labels.length > LISTED) rows.push(el("li", null, small(`of ${count(answer.labels.length, "label")}`)));
    const list = rows.length ? el("ol", { class: "labels" }, ...rows) : note("No object was found.");
    if (!answer.boxes?.length || !picture?.width) return [photograph(picture), list];
    const size = Math.max(picture.width, picture.height) / 26;
    const shapes = answer.boxes.slice(0, LISTED).flatMap((box, at) => {
      const score = answer.scores?.[at];
      const text = `${(answer.labels[at] ?? "").slice(0, 40)}${score === undefined ? "" : ` ${score.toFixed(2)}`}`;
      return tagged(box, text, size);
    });
    const label = `The picture with boxes around: ${answer.labels.slice(0, 10).join(", ")}`;
    return [canvas(picture, [picture.width, picture.height], label, ...shapes), list];
  }

  function caption(answer, stimulus, picture) {
    const facts = [];
    if (Number.isFinite(answer.tokens)) facts.push(count(answer.tokens, "token"));
    if (Number.isFinite(answer.score)) facts.push(`score ${answer.score.toFixed(3)}`);
    if (answer.finish) facts.push(`finished by ${answer.finish}`);
    const flags = answer.flags.slice(0, LISTED).map((flag) => [" ", badge(flag, "warn")]);
    return [
      photograph(picture),
      el("blockquote", { dir: "auto" }, said(answer.text)),
      facts.length || flags.length ? el("p", { class: "small" }, facts.join(" · "), ...flags.flat()) : null,
    ];
  }

  function word(answer) {
    const shown = [el("p", { class: "word" }, el("strong", null, said(answer.word)))];
    if (answer.candidates?.length) {
      const rows = answer.candidates.slice(0, LISTED).map((candidate) => el("li", null, said(candidate)));
      shown.push(el("p", { class: "small" }, "Candidates, best first"), el("ol", { class: "words" }, ...rows));
    }
    if (answer.skipped.length) {
      const rows = answer.skipped.slice(0, LISTED).map((one) => el("li", null, said(one.word), " ", small(one.rule)));
      shown.push(
        el("p", { class: "small" }, "Passed over, and the rule that said so"),
        el("ul", { class: "words" }, ...rows),
      );
    }
    return shown;
  }

  function conversation(answer) {
    const written = answer.pseudo ?? [];
    return [
      written.length ? pseudo(written) : null,
      chat(answer.messages, answer.withdrawn ?? []),
      answer.ended_early ? note("The conversation ended early.") : null,
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
      "details",
      { class: "pseudo" },
      el("summary", null, `Before it, ${count(written.length, "message")} that `, said(written[0].agent), " wrote itself"),
      ...parts.flatMap(({ topic, messages }) => [el("h4", null, said(topic)), chat(messages)]),
      written.length > MESSAGES ? note(`${count(written.length - MESSAGES, "more message")}.`) : null,
    );
  }

  /** Messages as bubbles: the first speaker on the left, the others on the right; who speaks is said once a burst.
   * What was withdrawn stands where it was. */
  function chat(messages, withdrawn = []) {
    if (!messages.length && !withdrawn.length) return note("No message was said.");
    const first = (messages[0] ?? withdrawn[0]).speaker;
    const all = messages.slice(0, MESSAGES).flatMap((message, at) => [...unsent(at), message]);
    const rest = messages.length - MESSAGES;
    if (rest <= 0) all.push(...unsent(messages.length));
    const rows = all.map((message, at) => {
      const who = el("span", { class: "who" });
      const isMore = at > 0 && all[at - 1].speaker === message.speaker;
      if (!isMore) who.append(said(message.speaker));
      if (!isMore && message.agent) who.append(" ", small(said(message.agent)));
      if (Number.isFinite(message.at)) who.append(" ", small(`at ${message.at.toFixed(1)} s`));
      if (message.why) who.append(" ", small(message.why === "ended" ? "not sent: it ended" : "withdrawn: interrupted"));
      const side = message.speaker === first ? "left" : "right";
      const kind = `${side}${isMore ? " more" : ""}${message.why ? " unsent" : ""}`;
      return el("li", { class: kind }, who, el("p", { class: "bubble", dir: "auto" }, said(message.text)));
    });
    if (rest > 0) rows.push(el("li", null, small(`and ${count(rest, "more message")}`)));
    return el("ol", { class: "chat", tabindex: 0, "aria-label": "Messages" }, ...rows);

    function unsent(turn) {
      return withdrawn.filter((one) => one.turn === turn);
    }
  }

  function judgement(answer) {
    const sure = Number.isFinite(answer.confidence) ? small(` confidence ${answer.confidence.toFixed(2)}`) : null;
    return [
      el("p", { class: "word" }, el("strong", null, said(answer.verdict)), sure),
      answer.reason ? el("p", null, said(answer.reason)) : null,
    ];
  }

  /** Rejected attempts, and apart from them those that stand and about which filters only noted something. */
  function attempts(found, task) {
    const isNoted = (one) => one.verdicts.length > 0 && !one.verdicts.some((verdict) => verdict.rejected);
    const parts = [
      [found.filter((one) => !isNoted(one)), "rejected attempt", "rejected attempts"],
      [found.filter(isNoted), "attempt that filters noted something in", "attempts that filters noted something in"],
    ];
    return parts
      .filter(([listed]) => listed.length)
      .map(([listed, one, many]) => {
        const rows = listed.slice(0, 20).map((attempt) => {
          const turn = Number.isInteger(attempt.turn) ? `turn ${attempt.turn}: ` : "";
          const verdicts = attempt.verdicts.flatMap((verdict) => [
            code(verdict.filter),
            ": ",
            said(verdict.found),
            " ",
          ]);
          return el("li", null, turn, ...verdicts, ...attempted(attempt, task));
        });
        const rest = listed.length - rows.length;
        return folded(
          count(listed.length, one, many),
          el("ol", null, ...rows),
          rest > 0 ? note(`and ${rest} more`) : null,
        );
      });
  }

  function attempted(attempt, task) {
    const given = attempt.answer;
    if (given === null) return [note("nothing")];
    if (Number.isInteger(attempt.turn)) return [el("blockquote", { dir: "auto" }, said(given.text ?? ""))];
    return drawn(task, given, {}, null, true);
  }

  function particulars(record) {
    const rows = [
      ["stimulus", code(record.stimulus)],
      ["seed", code(record.seed)],
      ["made", said(record.created)],
      ["digest", code(record.provenance.digest)],
    ];
    if (record.provenance.checkpoint) rows.push(["checkpoint", code(record.provenance.checkpoint)]);
    if (record.provenance.revision) rows.push(["revision", code(record.provenance.revision)]);
    for (const name of ["timing", "worker"]) {
      const about = Object.entries(record[name] ?? {}).map(([one, value]) => `${one.replace("_", " ")} ${value}`);
      if (about.length) rows.push([name, said(about.join(", "))]);
    }
    return folded("Particulars", pairs(rows));
  }

  /** The record as JSON, and a button that copies it as the line it is in a file of records. */
  function recorded(record, line) {
    const block = json(record, "The record as JSON");
    const told = el("span", { role: "status", class: "small" });
    const button = el("button", { type: "button", class: "quiet" }, "Copy the record");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(line);
        told.textContent = "Copied, as one line.";
      } catch {
        told.textContent = "The browser does not allow it; select the text instead.";
      }
    });
    return el(
      "section",
      { class: "record", "aria-label": "Record" },
      el("h3", null, "Record"),
      el("div", { class: "line" }, button, told),
      block,
    );
  }

  Object.assign(Turinglike, { TASKS, WORDS, answer, card, chat, hex, recorded, summary, swatch });
}
