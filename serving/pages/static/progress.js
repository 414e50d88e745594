// How far runs are that are not finished, and how long the rest will take.
"use strict";

{
  const { byId, count, el, quote, small } = Turinglike;

  /** A line for each agent that has not answered all yet. */
  function progress() {
    const lines = Turinglike.index.progress.map(([agent, answered, expected, rate, left, latest]) => {
      const bar = el("progress", { value: answered, max: expected, "aria-label": `Answers of ${agent}` });
      const about = [
        `${answered.toLocaleString("en")} of ${count(expected, "answer")}`,
        rate && `${rate} lately`,
        left && `${left} left at this pace`,
        latest && `last answer at ${new Date(1000 * latest).toLocaleTimeString("en-GB")}`,
      ];
      return el("li", quote(agent), bar, small(about.filter(Boolean).join(" · ")));
    });
    byId("progress").replaceChildren(lines.length ? el("ul.progress", lines) : "");
  }

  Object.assign(Turinglike, { progress });
}
