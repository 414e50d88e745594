// How far a study is, for who has the key. It stays in this page.
"use strict";

{
  const { byId, el, pairs } = Turinglike;

  function table(names, rows) {
    if (!rows.length) return "";
    const cells = (tag, values) => values.map((value) => el(tag, null, String(value)));
    const body = rows.map((values) => el("tr", cells("td", values)));
    return el("table", el("thead", el("tr", cells("th", names))), el("tbody", body));
  }

  function show({ judges, excluded, agents, void: reasons, decided_for: decidedFor, not_counted: notCounted, ...numbers }) {
    const facts = Object.entries(judges);
    const answers = numbers.conversations ? [] : ["answers"]; // each is a conversation
    for (const what of ["verdicts", ...answers, "conversations", "tests"])
      for (const [name, number] of Object.entries(numbers[what] ?? {}))
        facts.push([`${what}: ${name.replace("_", " ")}`, number]);
    const rows = (of, columns) =>
      Object.entries(of ?? {}).map(([name, row]) => [name, ...columns.map((column) => row[column] ?? "")]);
    const decided = Object.values(agents ?? {}).some((row) => row.decision);
    byId("told").replaceChildren(
      pairs(facts),
      table(
        ["answers of", "verdicts", "judged human", ...(decided ? ["within bounds", "after judges"] : [])],
        rows(agents, ["verdicts", "said_human", ...(decided ? ["decision", "judges"] : [])]),
      ),
      decidedFor ? el("p", decidedFor) : "",
      notCounted ? el("p", notCounted) : "",
      table(["excluded by", "verdicts", "judges"], rows(excluded, ["verdicts", "judges"])),
      table(["void", "number"], Object.entries(reasons ?? {})),
    );
  }

  byId("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const reply = await fetch("admin/status", { headers: { authorization: `Bearer ${byId("key").value.trim()}` } });
    if (reply.ok) show(await reply.json());
    else byId("told").replaceChildren(el("p.bad", "This is not the key."));
  });
}
