// The first page of the viewer: how many answers there are, what is odd about them, and figures by task.
"use strict";

{
  const { chart, code, count, el, folded, forList, json, note, percent, said, small, tabled, TASKS } = Turinglike;
  const FAILURES = 5; // kinds of failures that are not folded away
  const name = (task) => TASKS[task] ?? task;

  function statistics() {
    const { figures, counts } = Turinglike.index;
    const tasks = [...new Set([...counts.map(([, task]) => task), ...figures.map(({ task }) => task)])];
    const parts = [];
    if (tasks.length > 1) {
      const links = tasks.map((task, at) => {
        const go = (event) => {
          event.preventDefault();
          document.getElementById(`figures-${at}`)?.scrollIntoView();
        };
        return el("a", { href: "#view=statistics", click: go }, name(task));
      });
      parts.push(el("nav", { class: "jump", "aria-label": "Tasks" }, ...links));
    }
    parts.push(el("h2", null, "Counts"), countsTable(counts), ...failures(), ...alarms());
    tasks.forEach((task, at) => {
      const own = figures.filter((figure) => figure.task === task);
      parts.push(
        el(
          "section",
          { id: `figures-${at}`, "aria-label": name(task) },
          el("h2", null, name(task)),
          own.length ? el("div", { class: "figures" }, ...own.map(chart)) : note("There is no answer yet."),
        ),
      );
    });
    if (figures.length)
      parts.push(
        note("Intervals are of 95 %, with stimuli as their units: several answers to one stimulus are one draw."),
      );
    return parts.filter((part) => part !== null);
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
    const { failures: found } = Turinglike.index;
    if (!found.length) return [];
    const rows = found.map(([agent, error, number, stimulus, message]) =>
      el(
        "li",
        null,
        el("a", { href: forList({ agent, only: "failed", q: "", page: 1 }) }, count(number, "record")),
        " of ",
        said(agent),
        ": ",
        code(error),
        el("br"),
        small("first: ", code(stimulus), ": ", said(message.slice(0, 400))),
      ),
    );
    const list = (some) => el("ul", { class: "failures" }, ...some);
    const rest = rows.slice(FAILURES);
    return [
      el("h2", null, "Failures"),
      list(rows.slice(0, FAILURES)),
      rest.length ? folded(`and ${rest.length} more kinds`, list(rest)) : null,
    ];
  }

  function alarms() {
    const { alarms: raised, few, compared, note: looked } = Turinglike.index.alarms;
    const parts = raised.map(([kind, sentence, example]) =>
      el(
        "div",
        { class: "box-notice bad" },
        el("strong", null, `${kind[0].toUpperCase()}${kind.slice(1)}. `),
        said(sentence),
        example ? [" Example: ", said(example)] : null,
      ),
    );
    if (!raised.length) parts.push(el("p", null, compared ? "None." : "There are no answers to look at."));
    if (few.length) parts.push(note("Too few answers to say anything: ", said(few.join(", "))));
    return [el("h2", null, "Alarms"), ...parts, folded("What is looked for", note(looked))];
  }

  /** What made the answers, run by run. */
  function provenance() {
    const { badge, pairs } = Turinglike;
    const runs = JSON.parse(Turinglike.index.provenance);
    const texts = (rows) => pairs(rows.map(([one, text]) => [one, said(text)]));
    return [
      el("h2", null, "Provenance"),
      ...runs.flatMap(({ rows, agents }) => [
        texts(rows),
        el(
          "div",
          { class: "cards" },
          ...agents.map((agent) =>
            el(
              "article",
              { class: "card" },
              el(
                "h3",
                null,
                said(agent.name),
                " ",
                ...agent.badges.flatMap(([text, kind]) => [badge(text, kind), " "]),
              ),
              ...agent.about.map((text) => note(said(text))),
              texts(agent.rows),
              ...Object.entries(agent.more).map(([one, value]) => folded(one, json(value, one))),
            ),
          ),
        ),
      ]),
    ];
  }

  Object.assign(Turinglike, { provenance, statistics });
}
