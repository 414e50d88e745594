// The first page of the viewer: how many answers there are, what is odd about them, and figures by task.
"use strict";

{
  const { badge, code, count, el, folded, json, note, pairs, quote, small } = Turinglike;
  const { chart, forList, percent, tabled, TASKS } = Turinglike;
  const FAILURES = 5; // kinds of failures that are not folded away
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
      alarms(),
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
    const table = tabled("Counts", [head, ...rows]);
    table.classList.add("counts");
    table.firstChild.setAttribute("role", "table"); // a narrow screen has each row as a block
    return table;
  }

  function failures() {
    const { failures: kinds } = Turinglike.index;
    const row = ([agent, error, number, stimulus, message]) => {
      const link = el("a", { href: forList({ agent, only: "failed", q: "", page: 1 }) }, count(number, "record"));
      const first = small("first: ", code(stimulus), ": ", quote(message.slice(0, 400)));
      return el("li", link, " of ", quote(agent), ": ", code(error), el("br"), first);
    };
    const rest = kinds.slice(FAILURES);
    return [
      kinds.length > 0 && [el("h2", "Failures"), el("ul.failures", kinds.slice(0, FAILURES).map(row))],
      rest.length > 0 && folded(`and ${rest.length} more kinds`, el("ul.failures", rest.map(row))),
    ];
  }

  function alarms() {
    const { alarms: raised, few, compared, note: criteria } = Turinglike.index.alarms;
    const alarm = ([kind, sentence, example]) => {
      const title = el("strong", `${kind[0].toUpperCase()}${kind.slice(1)}. `);
      return el("div.box-notice.bad", title, quote(sentence), example && [" Example: ", quote(example)]);
    };
    return [
      el("h2", "Alarms"),
      raised.map(alarm),
      !raised.length && el("p", compared ? "None." : "There are no answers to look at."),
      few.length > 0 && note("Too few answers to say anything: ", quote(few.join(", "))),
      folded("What is looked for", note(criteria)),
    ];
  }

  /** What made the answers, run by run. */
  function provenance() {
    const runs = JSON.parse(Turinglike.index.provenance);
    const texts = (rows) => pairs(rows.map(([term, text]) => [term, quote(text)]));
    const card = (agent) =>
      el(
        "article.card",
        el(
          "h3",
          quote(agent.name),
          agent.badges.map(([text, kind]) => [" ", badge(text, kind)]),
        ),
        agent.about.map((text) => note(quote(text))),
        texts(agent.rows),
        Object.entries(agent.more).map(([part, value]) => folded(part, json(value, part))),
      );
    return [el("h2", "Provenance"), runs.map(({ rows, agents }) => [texts(rows), el("div.cards", agents.map(card))])];
  }

  Object.assign(Turinglike, { provenance, statistics });
}
