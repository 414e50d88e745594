// The selection as a file: records as they are in the run, or a table.
"use strict";

{
  const { el } = Turinglike;
  const COLUMNS = ["run", "task", "stimulus", "agent", "kind", "sample", "status", "answer", "seed", "created"];
  const FORMS = { jsonl: "application/jsonl", csv: "text/csv" };

  /** Every chosen record in the order of the set, so that each chunk is read once; `form` being one of FORMS; `tell` hears
   * how far it is. */
  async function download(form, tell) {
    const { index } = Turinglike;
    const { numbers: chosen, matches } = Turinglike.selection();
    const numbers = chosen.toSorted((one, other) => one - other);
    const head = [...COLUMNS, "answer_json", ...index.meta.map(([name]) => `meta.${name}`)];
    const file = new Lines();
    if (form === "csv") file.add(`\ufeff${line(head)}`);
    for (const [done, number] of numbers.entries()) {
      const { lines } = await Turinglike.stimulus(number);
      const meta = index.meta.map(([, values, codes]) => (codes[number] < 0 ? null : values[codes[number]]));
      for (const [nth, record] of lines.entries()) {
        const at = index.stimuli.first[number] + nth;
        if (!matches(at, number)) continue;
        file.add(form === "jsonl" ? `${record}\n` : line(row(record, at, meta)));
      }
      if (done % 500 === 499) tell(`${Math.round((100 * done) / numbers.length)} % …`);
    }
    const url = URL.createObjectURL(new Blob(file.finish(), { type: FORMS[form] }));
    el("a", { href: url, download: `answers.${form}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    tell("");
  }

  /** Lines of text in, a file's parts out. */
  class Lines {
    parts = [];
    piece = [];

    add(text) {
      this.piece.push(text);
      if (this.piece.length === 2000) {
        this.parts.push(new Blob(this.piece)); // a browser keeps these on disk
        this.piece = [];
      }
    }

    finish() {
      return [...this.parts, ...this.piece];
    }
  }

  /** A record's cells. */
  function row(text, at, meta) {
    const record = JSON.parse(text);
    const { texts, records, agents } = Turinglike.index;
    const plain = { ...record, agent: agents[records.agent[at]], answer: said(record) ?? texts[records.text[at]] };
    return [...COLUMNS.map((name) => plain[name]), JSON.stringify(record.answer), ...meta];
  }

  const said = ({ answer }) => answer?.text ?? answer?.word ?? answer?.color ?? answer?.verdict ?? null;

  /** Cells as a line of CSV. */
  const line = (cells) => `${cells.map(quoted).join(",")}\r\n`;

  function quoted(value) {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  Object.assign(Turinglike, { download });
}
