// A Parquet file of plain columns, texts and whole numbers, any of them null: uncompressed, one page for each column of a group of rows.
"use strict";

{
  const ROWS = 5_000; // of a group
  const LETTERS = 8_000_000; // likewise, from which on the next begins
  const MAGIC = new TextEncoder().encode("PAR1");
  // Thrift's compact protocol
  const I32 = 5;
  const I64 = 6;
  const TEXT = 8;
  const LIST = 9;
  const STRUCT = 12;
  // Parquet's own numbers
  const TYPES = { number: 2, text: 6 }; // INT64, BYTE_ARRAY
  const [OPTIONAL, UTF8, PLAIN, RLE] = [1, 0, 0, 3];

  const encoder = new TextEncoder();
  const utf8 = (text) => encoder.encode(text);

  function varint(value) {
    const bytes = [];
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
    return [...bytes, rest];
  }

  /** The bytes of a value that is not negative, a text, a list {of, values} or a struct [[field, type, value], …]. */
  function thrift(type, value) {
    if (type === TEXT) return [...varint(utf8(value).length), ...utf8(value)];
    if (type === LIST) {
      const size = value.values.length;
      const head = size < 15 ? [size * 16 + value.of] : [0xf0 + value.of, ...varint(size)];
      return head.concat(...value.values.map((one) => thrift(value.of, one)));
    }
    if (type !== STRUCT) return varint(value * 2); // zigzag
    const bytes = [];
    let last = 0;
    for (const [field, kind, one] of value) {
      bytes.push((field - last) * 16 + kind);
      for (const byte of thrift(kind, one)) bytes.push(byte);
      last = field;
    }
    return [...bytes, 0];
  }

  /** A page's bytes: which values there are, a bit each, and then they. */
  function page(kind, values) {
    const octets = Math.ceil(values.length / 8);
    const there = new Uint8Array(octets);
    values.forEach((value, at) => {
      if (value !== null) there[at >> 3] |= 1 << (at & 7);
    });
    const run = varint(octets * 2 + 1);
    const given = values.filter((value) => value !== null).map((value) => (kind === "text" ? utf8(value) : value));
    const size = given.reduce((sum, value) => sum + (kind === "text" ? 4 + value.length : 8), 0);
    const bytes = new Uint8Array(4 + run.length + octets + size);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, run.length + octets, true);
    bytes.set(run, 4);
    bytes.set(there, 4 + run.length);
    let at = 4 + run.length + octets;
    for (const value of given) {
      if (kind === "text") {
        view.setUint32(at, value.length, true);
        bytes.set(value, at + 4);
        at += 4 + value.length;
      } else {
        view.setBigInt64(at, BigInt(value), true);
        at += 8;
      }
    }
    return bytes;
  }

  /** Rows in, a file's parts out. `columns`: [name, "text" or "number"]; a cell that is not of that kind becomes null. */
  class Parquet {
    constructor(columns) {
      this.columns = columns;
      this.parts = [MAGIC];
      this.length = MAGIC.length;
      this.groups = [];
      this.number = 0;
      this.begin();
    }

    begin() {
      this.cells = this.columns.map(() => []);
      this.letters = 0;
    }

    add(row) {
      this.columns.forEach(([, kind], at) => {
        const fits = kind === "text" ? typeof row[at] === "string" : Number.isSafeInteger(row[at]);
        this.cells[at].push(fits ? row[at] : null);
        if (fits && kind === "text") this.letters += row[at].length;
      });
      if (this.cells[0].length === ROWS || this.letters > LETTERS) this.group();
    }

    put(bytes) {
      this.parts.push(new Blob([bytes])); // a browser keeps these on disk
      this.length += bytes.length;
    }

    group() {
      const rows = this.cells[0].length;
      const start = this.length;
      const chunks = this.columns.map(([name, kind], at) => {
        const data = page(kind, this.cells[at]);
        const about = [
          [1, I32, rows],
          [2, I32, PLAIN],
          [3, I32, RLE],
          [4, I32, RLE],
        ];
        const offset = this.length;
        const sizes = [2, 3].map((field) => [field, I32, data.length]);
        this.put(new Uint8Array(thrift(STRUCT, [[1, I32, 0], ...sizes, [5, STRUCT, about]])));
        this.put(data);
        const told = [
          [1, I32, TYPES[kind]],
          [2, LIST, { of: I32, values: [PLAIN, RLE] }],
          [3, LIST, { of: TEXT, values: [name] }],
          [4, I32, 0],
          [5, I64, rows],
          ...[6, 7].map((field) => [field, I64, this.length - offset]),
          [9, I64, offset],
        ];
        return [
          [2, I64, offset],
          [3, STRUCT, told],
        ];
      });
      this.groups.push([
        [1, LIST, { of: STRUCT, values: chunks }],
        [2, I64, this.length - start],
        [3, I64, rows],
      ]);
      this.number += rows;
      this.begin();
    }

    /** The parts of the whole file. */
    finish() {
      if (this.cells[0].length) this.group();
      const root = [
        [4, TEXT, "schema"],
        [5, I32, this.columns.length],
      ];
      const schema = this.columns.map(([name, kind]) => [
        [1, I32, TYPES[kind]],
        [3, I32, OPTIONAL],
        [4, TEXT, name],
        ...(kind === "text" ? [[6, I32, UTF8]] : []),
      ]);
      const footer = thrift(STRUCT, [
        [1, I32, 1],
        [2, LIST, { of: STRUCT, values: [root, ...schema] }],
        [3, I64, this.number],
        [4, LIST, { of: STRUCT, values: this.groups }],
        [6, TEXT, "Turinglike"],
      ]);
      const end = new Uint8Array(4);
      new DataView(end.buffer).setUint32(0, footer.length, true);
      return [...this.parts, new Uint8Array(footer), end, MAGIC];
    }
  }

  Object.assign(Turinglike, { Parquet });
}
