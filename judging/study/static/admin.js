// How far a study is, for who has the key. It stays in this page.
"use strict";

{
  const { byId, el, pairs } = Turinglike;

  const share = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));

  function table(names, rows) {
    const cell = (value, at) => el("td", { role: "cell", "data-column": names[at] }, String(value));
    const row = (values) => el("tr", { role: "row" }, ...values.map(cell));
    const head = el("tr", null, ...names.map((name) => el("th", { scope: "col" }, name)));
    return el("table", { role: "table" }, el("thead", null, head), el("tbody", null, ...rows.map(row)));
  }

  function show(found) {
    const { judges, verdicts } = found;
    if (!verdicts) return byId("told").replaceChildren(...ofParticipants(found));
    byId("told").replaceChildren(
      pairs([...Object.entries(judges), ["verdicts", verdicts.all], ["verdicts that count", verdicts.counted]]),
      el("h2", null, "Excluded"),
      table(
        ["rule", "verdicts", "judges"],
        Object.entries(found.excluded).map(([rule, about]) => [rule, about.verdicts, about.judges]),
      ),
      el("h2", null, "By day"),
      table(
        ["day", "count", "excluded"],
        Object.entries(found.days).map(([day, about]) => [day, about.counted ?? 0, about.excluded ?? 0]),
      ),
      el("h2", null, "Answers said to be human"),
      table(
        ["answers of", "verdicts", "judges", "share", "± p(M|M)", "± detectability", "more judges"],
        Object.entries(found.agents).map(([name, row]) => [
          name,
          row.verdicts,
          row.judges,
          share(row.said_human),
          share(row.p_machine),
          share(row.detectability),
          row.needed ?? "–",
        ]),
      ),
    );
  }

  /** Of participants who answer, or of online tests. */
  function ofParticipants({ judges, answers, tests, right }) {
    const numbers = pairs([...Object.entries(judges), ...Object.entries(answers ?? tests).map(([name, number]) => [`${answers ? "answers" : "tests"}: ${name.replace("_", " ")}`, number])]); // prettier-ignore
    if (!tests) return [numbers];
    const rows = right.map((row) => [row.by, row.value, row.verdicts, row.verdicts ? share(row.right / row.verdicts) : "–", row.void]);
    return [numbers, el("h2", null, "Right"), table(["by", "is", "last verdicts", "share", "void"], rows)];
  }

  byId("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const reply = await fetch("admin/status", { headers: { authorization: `Bearer ${byId("key").value.trim()}` } });
    if (reply.ok) show(await reply.json());
    else byId("told").replaceChildren(el("p", { class: "bad" }, "This is not the key."));
  });
}
