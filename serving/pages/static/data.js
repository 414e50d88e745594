// The data of the viewer: one index of everything, and the records in chunks that are loaded when they are looked at.
"use strict";

{
  const { byId, el } = Turinglike;
  const KEPT = 8; // chunks that are held at once

  const chunks = new Map(); // name -> promise of what it holds, the one used last at the end
  const waiting = new Map();

  /** What the script of a chunk calls with what it holds. */
  function take(name, payload) {
    waiting.get(name)?.resolve(payload);
    waiting.delete(name);
  }

  /** A piece of the data: from this page, if it is a report of one file, else from the script of that name. */
  function load(name) {
    if (name === "index") chunks.clear();
    const inside = byId(`data-${name}`);
    if (inside !== null) return Promise.resolve(JSON.parse(inside.textContent));
    return new Promise((resolve, reject) => {
      waiting.set(name, { resolve });
      const script = el("script", { src: `data/${name}.js` });
      script.addEventListener("load", () => script.remove());
      script.addEventListener("error", () => {
        script.remove();
        reject(new Error(`the file data/${name}.js, which belongs to this page, cannot be read`));
      });
      document.head.append(script);
    });
  }

  /** The chunk of a number; of those that are held the one that was not looked at for longest gives way. */
  function chunk(number) {
    const name = String(number);
    const chunk = chunks.get(name) ?? load(name);
    chunks.delete(name);
    chunks.set(name, chunk);
    chunk.catch(() => chunks.delete(name));
    if (chunks.size > KEPT) chunks.delete(chunks.keys().next().value);
    return chunk;
  }

  /** A stimulus of the set by its number: its row, the lines of its records in the order of the index, and of words
   * what the papers' rules make of each, or null. */
  async function stimulus(number) {
    const starts = Turinglike.index.chunks;
    let [low, high] = [0, starts.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= number) low = middle;
      else high = middle;
    }
    const [row, lines, byRules] = (await chunk(low))[number - starts[low]];
    return { row: JSON.parse(row), lines, byRules };
  }

  /** A picture that can be drawn on: its URL and its own size in pixels. `trouble` says why it cannot be shown. */
  function picture(number) {
    if (number < 0) return null;
    const [width, height, name, trouble, changed] = Turinglike.index.pictures[number];
    const inside = byId(`data-picture-${number}`);
    let url = null;
    if (inside !== null) url = JSON.parse(inside.textContent);
    else if (trouble === null) url = `pictures/${number}.jpg`;
    return { url, width, height, name, trouble, changed };
  }

  Object.assign(Turinglike, { load, picture, stimulus, take, held: () => chunks.size });
}
