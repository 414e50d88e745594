// How many answers there are, how many failed, and figures by task; what made the answers.
"use strict";

{
  const { badge, code, count, el, firstOf, folded, json, note, pairs, quote, small } = Turinglike;
  const { chart, forList, percent, tabled, TASKS } = Turinglike;
  const FAILURES = 20; // kinds of them that are listed
  const name = (task) => TASKS[task] ?? task;

  function statistics() {
    const { figures, counts } = Turinglike.index;
    const tasks = [...new Set([...counts.map(([, task]) => task), ...figures.map(({ task }) => task)])];
    const link = (task, at) => {
      const click = (event) => {
        event.preventDefault();
        document.getElementById(`figures-${at}`)?.scrollIntoView();
      };
      return el("a", { href: "#view=statistics", click }, name(task));
    };
    const section = (task, at) => {
      const drawn = figures.filter((figure) => figure.task === task).map(chart);
      const content = drawn.length ? el("div.figures", drawn) : note("There is no answer yet.");
      return el("section", { id: `figures-${at}`, "aria-label": name(task) }, el("h2", name(task)), content);
    };
    const units = "Intervals are of 95 %, with stimuli as their units: several answers to one stimulus are one draw.";
    return [
      tasks.length > 1 && el("nav.jump", { "aria-label": "Tasks" }, tasks.map(link)),
      el("h2", "Counts"),
      countsTable(counts),
      failures(),
      tasks.map(section),
      figures.length > 0 && note(units),
    ];
  }

  function countsTable(counts) {
    if (!counts.length) return note("There is no record yet.");
    const head = ["agent", "task", "ok", "rejected", "failed", "unanswered", "attempts per answer", "kind"];
    const rows = counts.map(([who, task, kind, persons, ok, rejected, failed, expected, attempts]) => {
      const total = ok + rejected + failed;
      return [
        persons ? `people (${count(persons, "participant")})` : who,
        name(task),
        `${ok.toLocaleString("en")} (${total ? percent(ok / total) : "–"})`,
        rejected.toLocaleString("en"),
        failed.toLocaleString("en"),
        expected === null ? "–" : Math.max(expected - total, 0).toLocaleString("en"),
        total ? ((attempts + total) / total).toFixed(2) : "–",
        kind,
      ];
    });
    return tabled("Counts", [head, ...rows]);
  }

  function failures() {
    const { failures: kinds } = Turinglike.index;
    const row = ([agent, error, number, stimulus, message]) => {
      const link = el("a", { href: forList({ agent, only: "failed", q: "", page: 1 }) }, count(number, "record"));
      const first = small("first: ", code(stimulus), ": ", quote(message.slice(0, 400)));
      return el("li", link, " of ", quote(agent), ": ", code(error), el("br"), first);
    };
    return kinds.length > 0 && [el("h2", "Failures"), el("ul.failures", firstOf(kinds, FAILURES, row))];
  }

  /** What made the answers, run by run. */
  function provenance() {
    const runs = JSON.parse(Turinglike.index.provenance);
    const texts = (rows) => pairs(rows.map(([term, text]) => [term, quote(text)]));
    const card = ({ about, badges, more, rows, ...agent }) => {
      const head = [quote(agent.name), badges.map(([text, kind]) => [" ", badge(text, kind)])];
      const parts = Object.entries(more).map(([part, value]) => folded(part, json(value, part)));
      return el("article.card", el("h3", head), about.map((text) => note(quote(text))), texts(rows), parts);
    };
    return [el("h2", "Provenance"), runs.map(({ rows, agents }) => [texts(rows), el("div.cards", agents.map(card))])];
  }

  Object.assign(Turinglike, { provenance, statistics });
}
