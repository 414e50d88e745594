// What stands in a cell of the grid: answers in a few words, colours as chips, paths drawn on a small picture.
"use strict";

{
  const { badge, coordinate, count, el, quote, small, svg } = Turinglike;
  const { colourOf, line, swatchOf, toPicture } = Turinglike;
  const { AGREEMENT, STATUSES, agreementOf, forOne, recordsOf, stimulus } = Turinglike;
  const WORDS = ["color_estimation", "word_association", "judgement"]; // tasks whose answers are short and can be equal
  const LISTED = 3; // different answers in one cell
  const PATHS = 12; // that are drawn on one small picture
  const LOW = 50; // per cent: answers that agree less stand out

  /** The cell of a row in a column. A path is drawn once its record is there: `later` takes in what draws it. */
  function cell(row, column, seen, isHit, later) {
    if (column.who === AGREEMENT) return agreement(agreementOf(row, column.number));
    const found = recordsOf(row, column);
    if (!found.length) return el("td.none", el("span", { "aria-hidden": "true" }, "–"), el("span.away", "no answer"));
    const isDrawn = column.task === "attention_prediction" && seen?.url && found.some(({ at }) => statusOf(at) === "ok");
    const [first] = found;
    const { agents, records } = Turinglike.index;
    const whose = column.label === -1 ? {} : { agent: agents[column.label], sample: records.sample[first.at] };
    const href = forOne(first.stimulus, whose);
    const content = isDrawn ? sketched(found, column, seen, later) : said(found, column);
    const isAny = found.some(({ at, stimulus: number }) => isHit(at, number));
    return el(isAny ? "td.hit" : "td", el("a.said", { href, tabindex: -1 }, content), flags(found));
  }

  const statusOf = (at) => STATUSES[Turinglike.index.records.status[at]];
  const textOf = (at) => Turinglike.index.texts[Turinglike.index.records.text[at]];

  function agreement(percent) {
    if (percent < 0) return el("td.none", el("span", { "aria-hidden": "true" }, "–"), el("span.away", "not known"));
    const length = el("span.length", { "aria-hidden": "true" });
    length.style.width = `${percent}%`;
    return el(percent < LOW ? "td.share.low" : "td.share", `${percent} %`, length);
  }

  /** Answers in words: of short ones how often each was given, of others the first. */
  function said(found, column) {
    const isShort = WORDS.includes(column.task);
    const tally = new Map();
    for (const { at } of found) tally.set(textOf(at), [...(tally.get(textOf(at)) ?? []), at]);
    const inOrder = [...tally].sort(([, some], [, others]) => others.length - some.length);
    const shown = inOrder.slice(0, isShort ? LISTED : 1);
    const answers = shown.map(([text, records]) => {
      const times = records.length > 1 && small(` × ${records.length}`);
      const why = statusOf(records[0]) === "failed" && "span.text.failure"; // what went wrong may be long
      const kind = why || (isShort ? "span.word" : "span.text");
      return [el(kind, standing(records[0]), swatchOf(column.task, text), quote(text), times), " "];
    });
    const left = inOrder.length - shown.length;
    const more = left > 0 && count(left, isShort ? "other word" : "other");
    const all = column.label === -1 && count(found.length, "answer"); // people who are not told apart have one name
    const about = [all, more].filter(Boolean).join(", ");
    return [answers, about && small(about)];
  }

  function standing(at) {
    const status = statusOf(at);
    return status !== "ok" && [badge(status, status === "failed" ? "alert" : "warn"), " "];
  }

  /** How many of these answers have flags, and which. */
  function flags(found) {
    const { flags: kinds, records } = Turinglike.index;
    const flagged = found.filter(({ at }) => kinds[records.flags[at]].length > 0);
    if (!flagged.length) return null;
    const names = [...new Set(flagged.flatMap(({ at }) => kinds[records.flags[at]]))].join(", ");
    return el("span.flags", { title: names }, "⚑", el("span.away", ` flags: ${names}`));
  }

  /** The paths of a cell on one small picture. */
  function sketched(found, column, seen, later) {
    const holder = el("span.sketch", thumbnail(seen));
    const drawn = found.filter(({ at }) => statusOf(at) !== "failed").slice(0, column.label === -1 ? PATHS : 1);
    later(async () => {
      for (const { at, stimulus: number } of drawn) {
        const { lines } = await stimulus(number);
        sketch(holder, JSON.parse(lines[at - Turinglike.index.stimuli.first[number]]), seen);
      }
    });
    const several = column.label === -1 || found.length > 1;
    const about = several ? count(found.length, "path") : [standing(found[0].at), textOf(found[0].at)];
    const left = found.length - drawn.length;
    return [holder, small(about, left > 0 && `, ${drawn.length} drawn`)];
  }

  const thumbnail = ({ url }) =>
    el("img", { src: url, alt: "", loading: "lazy", error: (event) => event.target.remove() });

  function sketch(holder, { answer, kind }, { width, height }) {
    if (!Array.isArray(answer?.fixations) || !Array.isArray(answer.frame)) return;
    const points = toPicture(answer.fixations, answer, [width, height]);
    const fill = colourOf(0, kind);
    const start = ([x, y]) => ({ cx: coordinate(x), cy: coordinate(y), r: Math.max(width, height) / 30, fill });
    holder.append(
      svg(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "xMinYMin meet", "aria-hidden": "true" },
        svg("polyline.under", { points: line(points) }),
        svg("polyline.over", { points: line(points), stroke: fill }),
        points.slice(0, 1).map((point) => svg("circle", start(point))),
      ),
    );
  }

  Object.assign(Turinglike, { cell, thumbnail });
}
