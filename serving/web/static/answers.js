// Answers drawn, one way for each task, and the record around them.

import { badge, code, coordinate, count, el, folded, json, note, pairs, said, small, svg } from "./dom.js";
import { canvas, scanpath } from "./scanpath.js";

export const TASKS = {
  color_estimation: "Colour estimation",
  object_detection: "Object detection",
  attention_prediction: "Attention prediction",
  image_captioning: "Image captioning",
  word_association: "Word association",
  conversation: "Conversation",
};
const WORDS = ["black", "blue", "brown", "gray", "green", "orange", "pink", "purple", "red", "white", "yellow"];
const LISTED = 100;

const DRAW = {
  color_estimation: color,
  object_detection: objects,
  attention_prediction: scanpath,
  image_captioning: caption,
  word_association: word,
};

/** A record's answer, or how there came to be none, its attempts, and the record itself as `line`. */
export function card(record, line, stimulus, picture) {
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
    shown.push(...DRAW[record.task](record.answer, stimulus, picture));
  if (record.status === "failed" && picture?.url) shown.push(photograph(picture));
  if (record.attempts.length) shown.push(attempts(record.attempts));
  if (record.raw !== null) shown.push(folded("What the model said", json(record.raw, "What the model said")));
  shown.push(particulars(record));
  const head = el("h3", null, record.agent, " ", small(TASKS[record.task]));
  if (record.kind === "control") head.append(" ", badge("control: odd by design", "warn"));
  return [el("article", { class: `card ${record.status}` }, head, ...shown), recorded(record, line)];
}

/** A few words on an answer, for those who hear the page. */
export function summary(record) {
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
  const list = rows.length ? el("ol", { class: "labels" }, ...rows) : note("No object was found.");
  if (!answer.boxes?.length || !picture?.width) return [photograph(picture), list];
  const size = Math.max(picture.width, picture.height) / 26;
  const shapes = answer.boxes.slice(0, LISTED).flatMap(([x, y, width, height], at) => {
    const score = answer.scores?.[at];
    const text = `${(answer.labels[at] ?? "").slice(0, 40)}${score === undefined ? "" : ` ${score.toFixed(2)}`}`;
    return [
      svg("rect", {
        class: "box",
        x: coordinate(x),
        y: coordinate(y),
        width: coordinate(Math.max(width, 0)),
        height: coordinate(Math.max(height, 0)),
      }),
      svg(
        "text",
        {
          class: "tag",
          x: coordinate(x + size / 4),
          y: coordinate(Math.max(y, 0) + size),
          "font-size": coordinate(size),
        },
        text,
      ),
    ];
  });
  const label = `The picture with boxes around: ${answer.labels.slice(0, 10).join(", ")}`;
  return [canvas(picture, [picture.width, picture.height], label, ...shapes), list];
}

function caption(answer, stimulus, picture) {
  const facts = [];
  if (answer.tokens !== null) facts.push(count(answer.tokens, "token"));
  if (answer.score !== null) facts.push(`score ${answer.score.toFixed(3)}`);
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

function attempts(found) {
  const rows = found.slice(0, 20).map((attempt) => {
    const verdicts = attempt.verdicts.flatMap((one) => [
      badge(one.rejected ? "rejected" : "noted", one.rejected ? "warn" : ""),
      " ",
      code(one.filter),
      ": ",
      said(one.found),
      " ",
    ]);
    return el("li", null, ...verdicts, json(attempt.answer, "The attempt's answer"));
  });
  return folded(`${count(found.length, "attempt")} that filters spoke of`, el("ol", null, ...rows));
}

function particulars(record) {
  const rows = [
    ["seed", code(record.seed)],
    ["made", record.created],
    ["digest", code(record.provenance.digest)],
  ];
  if (record.provenance.checkpoint) rows.push(["checkpoint", code(record.provenance.checkpoint)]);
  if (record.provenance.revision) rows.push(["revision", code(record.provenance.revision)]);
  for (const name of ["timing", "worker"]) {
    const about = Object.entries(record[name] ?? {}).map(([one, value]) => `${one.replace("_", " ")} ${value}`);
    if (about.length) rows.push([name, about.join(", ")]);
  }
  return folded("Particulars", pairs(rows));
}

/** The record as JSON, and a button that copies it as the line it is in a file of records. */
export function recorded(record, line) {
  const block = json(record, "The record as JSON");
  const told = el("span", { role: "status", class: "small" });
  const button = el("button", { type: "button", class: "quiet" }, "Copy the record");
  button.addEventListener("click", async () => {
    const copied = await copy(line);
    told.textContent = copied ? "Copied, as one line." : "The browser does not allow it; select the text instead.";
  });
  return el(
    "section",
    { class: "record", "aria-label": "Record" },
    el("h3", null, "Record"),
    el("div", { class: "line" }, button, told),
    block,
  );
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // without https browsers have no clipboard for a page that is not this machine's; the old way may do
  }
  const field = el("textarea", { class: "away", "aria-hidden": "true" });
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return copied;
}
