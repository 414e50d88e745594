#!/usr/bin/env bash
set -euo pipefail
# Package: lab.js 20.2.4 from npm (its newest release that is no preview), run in node with jsdom 29.1.1 in place of a browser.
# Found: two silent limits of lab.util.Random, which orders the trials of a study.
#   1. A seed alone is ignored. It needs algorithm: "alea" beside it; without, each participant gets another order.
#   2. The smallest distance between repetitions takes all rows of a table for the same value, as each becomes "[object Object]".
# Expected: the same seed gives the same order; of twelve trials with six words, two of each, an order without neighbours is found.
# Seen: with the seed alone, two orders of forty differ. With words as text the distance holds. With rows ({word: "sea"}) it gives up
#   after 10,000 tries: there is a warning on the console, and an order is returned all the same.
# Source: lab.js's reference on random data speaks of a smallest distance between repetitions of the same value; rows of a loop are objects.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes > /dev/null
npm install --silent --no-audit --no-fund --save-exact lab.js@20.2.4 jsdom@29.1.1
cat > try.cjs <<'JS'
const fs = require("fs");
const { JSDOM } = require("jsdom");

const dom = new JSDOM("<!doctype html><body></body>", { url: "https://example.org/", runScripts: "outside-only", pretendToBeVisual: true });
const { window } = dom;
// jsdom draws nothing, and lab.js looks for these as it starts.
window.SVGSVGElement.prototype.createSVGMatrix = () => ({});
window.Path2D = function Path2D() {};
window.eval(fs.readFileSync("node_modules/lab.js/dist/lab.js", "utf8"));
const { lab } = window;
console.log("lab.js", lab.version);

const numbers = [...Array(40).keys()];
const order = (options) => new lab.util.Random(options).shuffle(numbers).join(" ");
const same = (options) => order(options) === order(options);
const warnings = [];
window.console.warn = (text) => warnings.push(text);
console.warn = (text) => warnings.push(text);
const random = new lab.util.Random({ seed: "a", algorithm: "alea" });
const words = ["sea", "tea", "sky", "sun", "box", "hat"];
const rows = words.map((word) => ({ word }));

function shuffled(list) {
  warnings.length = 0;
  const drawn = random.constrainedShuffle([...list, ...list], { minRepDistance: 2 });
  return `${drawn.length} trials, warnings: ${warnings.length}`;
}

const seen = {
  "seed alone, twice the same order": same({ seed: "turing" }),
  "seed and algorithm, twice the same order": same({ seed: "turing", algorithm: "alea" }),
  "words, no neighbours": shuffled(words),
  "rows, no neighbours": shuffled(rows),
};
for (const [name, value] of Object.entries(seen)) console.log(`${name}: ${value}`);
const expected = {
  "seed alone, twice the same order": false,
  "seed and algorithm, twice the same order": true,
  "words, no neighbours": "12 trials, warnings: 0",
  "rows, no neighbours": "12 trials, warnings: 1",
};
if (JSON.stringify(seen) !== JSON.stringify(expected)) {
  console.error("changed: expected", expected);
  process.exit(1);
}
process.exit(0);
JS
node try.cjs
