// The selection as a file: records as they are in the run, or a table.
"use strict";

{
  const { el } = Turinglike;
  const COLUMNS = ["run", "task", "stimulus", "agent", "kind", "sample", "status", "answer", "seed", "created"];

  /** Every chosen record in the order of the set, so that each chunk is read once; `form` being "jsonl" or "csv"; `tell` hears how far it is. */
  async function download(form, tell) {
    const { index } = Turinglike;
    const { numbers: chosen, matches } = Turinglike.selection();
    const numbers = chosen.toSorted((one, other) => one - other);
    const columns = index.meta.map(([name]) => name);
    const head = [...COLUMNS, "answer_json", ...columns.map((name) => `meta.${name}`)];
    const parts = form === "csv" ? [`\ufeff${head.map(cell).join(",")}\r\n`] : [];
    let piece = [];
    for (const [done, number] of numbers.entries()) {
      const { lines } = await Turinglike.stimulus(number);
      const meta = index.meta.map(([, values, codes]) => (codes[number] < 0 ? "" : values[codes[number]]));
      for (const [nth, line] of lines.entries()) {
        const at = index.stimuli.first[number] + nth;
        if (matches(at, number)) piece.push(form === "csv" ? row(line, at, meta) : `${line}\n`);
      }
      if (piece.length > 2000) {
        parts.push(new Blob(piece)); // a browser keeps these on disk
        piece = [];
        tell(`${Math.round((100 * done) / numbers.length)} % …`);
      }
    }
    const file = new Blob([...parts, ...piece], { type: form === "csv" ? "text/csv" : "application/jsonl" });
    const url = URL.createObjectURL(file);
    el("a", { href: url, download: `answers.${form}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    tell("");
  }

  function row(line, at, meta) {
    const record = JSON.parse(line);
    const { texts, records, agents } = Turinglike.index;
    const plain = { ...record, agent: agents[records.agent[at]], answer: said(record) ?? texts[records.text[at]] };
    const cells = [...COLUMNS.map((name) => plain[name]), JSON.stringify(record.answer), ...meta];
    return `${cells.map(cell).join(",")}\r\n`;
  }

  const said = ({ answer }) => answer?.text ?? answer?.word ?? answer?.color ?? answer?.verdict ?? null;

  function cell(value) {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  Object.assign(Turinglike, { download });
}
