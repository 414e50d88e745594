// The parts of a study's dashboard that show figures. All of them are made anew from what the server tells.
"use strict";

{
  const { badge, code, count, curveFigure, el, quiet, quote } = Turinglike;
  const MOST_ROWS = 100; // participants that are shown before one asks for all
  const STAGES = { "at it": "at it", begun: "no answer yet", screened_out: "screened out" };
  const ENTRY = {
    open: ["open", "good"],
    stopped: ["nobody new may begin", "warn"],
    enough: ["as many as wanted: nobody new may begin", "good"],
    closed: ["closed", "alert"],
  };
  const SHORT = { year: undefined, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
  const when = (at) => new Date(at).toLocaleString("en-GB", SHORT);
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const number = (value) => value.toLocaleString("en");
  const known = (value, unit = "") => (value === null || value === undefined ? "" : `${value}${unit}`);
  const right = (pair) => (pair ? `${pair[0]} of ${pair[1]}` : "");

  /** A table; the first cell of a row names it. `numbers` are the columns whose cells are set at their end. */
  function tabled(names, rows, { numbers = [], long = [], rowClass = () => "" } = {}) {
    const kinds = names.map((name) => (numbers.includes(name) ? ".number" : long.includes(name) ? ".long" : ""));
    const cell = (value, at) => (at ? el(`td${kinds[at]}`, quote(value)) : el("th", { scope: "row" }, quote(value)));
    const head = names.map((name, at) => el(`th${kinds[at]}`, { scope: "col" }, name));
    const body = rows.map((values) => el("tr", { class: rowClass(values) || null }, values.map(cell)));
    return el("table", el("thead", el("tr", head)), el("tbody", body));
  }

  /** A sentence with commands in backticks. */
  const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? code(part) : part));
  const sentence = (text) => el("p.note", withCode(text));

  const inRegion = (label, table) => el("div.wide", { tabindex: 0, role: "region", "aria-label": label }, table);

  /** A table below its heading; nothing where it has no rows. */
  function section(title, names, rows, how = {}, ...more) {
    return rows.length ? el("section", el("h2", title), inRegion(title, tabled(names, rows, how)), more) : "";
  }

  const nounOf = (status) => (status.verdicts ? "judge" : "participant");

  /** Whether somebody may begin, in a word. */
  function stateOf(status) {
    const [text, kind] = ENTRY[status.entry];
    return badge(text, kind);
  }

  function tile(name, figure, below = "", { progress = null, kind = "" } = {}) {
    const bar = progress && el("progress", { max: progress[1], value: progress[0], "aria-label": name });
    return el("li", { class: kind }, el("span.name", name), el("strong.figure", figure), bar, el("span.small", below));
  }

  /** The figures that one looks at first. */
  function tiles(status) {
    const { wanted, joined, finished = 0 } = status.judges;
    const outs = ["declined", "screened_out", "blocked", "left"].map((name) => status.judges[name] ?? 0);
    const out = outs.reduce((sum, each) => sum + each, 0);
    const there = (status.judges["at it"] ?? 0) + (status.judges.begun ?? 0);
    const parts = [
      tile("Finished", `${number(finished)} of ${number(wanted)}`, "", { progress: [Math.min(finished, wanted), wanted] }),
      tile("Joined", number(joined), `${number(there)} not at the end`),
    ];
    const held = status.tests ?? status.conversations;
    if (held) {
      const noun = status.tests ? "test" : "conversation";
      const of = status.tests ? `${number(held.over)} of ${number(held.wanted)}` : number(held.over);
      parts.push(tile(status.tests ? "Tests" : "Conversations", of, `complete; ${held.under_way} not complete`));
      const inVain = status.judges[`finished without a ${noun} that counts`] ?? 0;
      const about = inVain ? `${count(inVain, "person", "people")} finished without one that counts` : "";
      parts.push(tile("Void", number(held.void), about, { kind: held.void ? "alert" : "" }));
    } else if (status.verdicts) {
      const { all, counted } = status.verdicts;
      parts.push(tile("Verdicts", number(all), `${number(all - counted)} excluded`));
    } else parts.push(tile("Answers", number(status.answers.all), `${number(status.answers.flagged)} with a flag`));
    parts.push(tile("Dropped out", number(out), out ? "reasons below" : "nobody"));
    const { minutes, seconds } = status.times;
    const each = seconds === null ? "" : `${seconds} s for each ${status.verdicts ? "trial" : "stimulus"}`;
    parts.push(tile("Median time", minutes === null ? "–" : `${minutes} min`, minutes === null ? "nobody has finished" : each));
    return parts;
  }

  /** The curve, and the tables of what is counted. */
  function figures(status) {
    const { judges, agents = {}, excluded = {}, quotas, coverage, server } = status;
    const until = status.closed ? Date.parse(status.closed) : Date.now();
    const reasons = Object.entries(status.void ?? {});
    const outs = ["declined", "screened_out", "blocked", "left"].filter((name) => judges[name]);
    const lost = [
      ...reasons.map(([reason, times]) => [`void: ${reason}`, number(times)]),
      ...outs.map((name) => [`dropped out: ${name.replace("_", " ")}`, number(judges[name])]),
    ];
    const decided = Object.values(agents).some((row) => row.decision);
    const agentRows = Object.entries(agents).map(([name, row]) => [
      name,
      number(row.verdicts),
      percent(row.said_human),
      ...(decided ? [row.decision ? `${row.decision} (${count(row.judges, "judge")})` : ""] : []),
    ]);
    const agentNames = ["answers of", "verdicts", "judged human", ...(decided ? ["within bounds"] : [])];
    const notes = [status.decided_for, status.not_counted].filter(Boolean).map(sentence);
    const exclusions = Object.entries(excluded).map(([rule, row]) => [rule, number(row.verdicts), number(row.judges)]);
    return [
      el("section", el("h2", "Over time"), curveFigure(status.curve, until, judges.wanted, tabled)),
      section("What was lost", ["reason", "number"], lost, { numbers: ["number"] }),
      section("Who is taken for a human", agentNames, agentRows, { numbers: ["verdicts", "judged human"] }, notes),
      section("Excluded verdicts", ["rule", "verdicts", "judges"], exclusions, { numbers: ["verdicts", "judges"] }),
      section(
        "Kinds of tests",
        ["kind", "complete", "wanted"],
        quotas.map(({ name, done, wanted }) => [name, done, wanted]),
        { numbers: ["complete", "wanted"] },
      ),
      coverage ? el("p.note", covered(status)) : "",
      server ? el("section", el("h2", "The agents' server"), served(server)) : "",
    ];
  }

  function covered({ coverage, verdicts }) {
    const noun = verdicts ? count(coverage.all, "trial") : count(coverage.all, "stimulus", "stimuli");
    return `Answers to each of ${noun}: from ${coverage.fewest} to ${coverage.most}.`;
  }

  function served({ address, agents, problems }) {
    const state = problems.length ? badge("does not answer", "alert") : badge("answers", "good");
    return el("p", state, ` ${address} for ${agents.join(", ")}`);
  }

  /** What needs somebody now, as a sentence; "" if nothing does. */
  function troubleOf(status) {
    const problems = status.server?.problems ?? [];
    return problems.length ? `Meetings with machines become void now: ${problems.join("; ")}` : "";
  }

  let showsAll = false;

  /** A row for each participant, the newest first. */
  function people(status, again) {
    const { rows } = status;
    const noun = nounOf(status);
    const title = el("h2", { id: "people-title" }, noun === "judge" ? "Judges" : "Participants");
    if (!rows.length) return [title, el("p.note", "Nobody has begun yet.")];
    const has = (name) => rows.some((row) => row[name] !== null && row[name].length !== 0 && row[name] !== 0);
    const columns = [
      ["number", (row) => `${row.number}`],
      [noun, (row) => row.judge],
      ["stage", (row) => STAGES[row.stage] ?? row.stage],
      ["done", (row) => `${row.done} of ${row.of}`],
      ["joined", (row) => (row.kit ? "kit" : when(row.joined))],
      ["last seen", (row) => (row.kit ? "" : when(row.last_seen))],
      ["minutes", (row) => known(row.minutes)],
      has("seconds") && ["median s", (row) => known(row.seconds)],
      has("controls") && ["controls right", (row) => right(row.controls)],
      has("catch") && ["catch trials right", (row) => right(row.catch)],
      has("excluded") && ["excluded", (row) => (row.excluded ? `${row.excluded} (${row.rules.join(", ")})` : "")],
      has("void") && ["void", (row) => row.void.join(", ")],
    ].filter(Boolean);
    const names = columns.map(([name]) => name);
    const newest = [...rows].reverse();
    const shown = showsAll ? newest : newest.slice(0, MOST_ROWS);
    const finished = new Set(rows.filter(({ stage }) => stage === "finished").map((row) => `${row.number}`));
    const how = {
      numbers: ["minutes", "median s"],
      long: ["excluded", "void", "stage"],
      rowClass: ([first]) => (finished.has(first) ? "ended" : ""),
    };
    const values = shown.map((row) => columns.map(([, of]) => of(row)));
    const all = () => {
      showsAll = true;
      again();
    };
    const more = newest.length > shown.length ? quiet(`Show all ${number(newest.length)}`, all) : "";
    const note = el("p.note", "The newest first; times are those of this browser's clock. A green edge: finished.");
    return [title, note, inRegion(`${title.textContent}, a row each`, tabled(names, values, how)), more];
  }

  Object.assign(Turinglike, { figures, people, stateOf, tiles, troubleOf, withCode });
}
