#!/usr/bin/env bash
set -euo pipefail
# Package: jspsych 8.3.0 from npm, run in node with jsdom 29.1.1 in place of a browser.
# Found: randomization.repeat turns each list in its list into an object with the keys "0", "1" and so on.
# Expected: pairs of pictures (a person's and a machine's) come back as pairs, as shuffle gives them back.
# Seen: ["a.png", "b.png"] becomes {"0": "a.png", "1": "b.png"}. It has no length, so a loop over the pair shows nothing.
#   The data hold an object where the design had a list. The functions shuffle and sampleWithoutReplacement keep the lists.
# Source: jsPsych's reference (jspsych-randomization) says that the result holds the original elements in a random order.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes > /dev/null
npm install --silent --no-audit --no-fund --save-exact jspsych@8.3.0 jsdom@29.1.1
cat > try.mjs <<'JS'
import { JSDOM } from "jsdom";

const dom = new JSDOM("<!doctype html><body></body>", { url: "https://example.org/" });
globalThis.window = dom.window;
globalThis.document = dom.window.document;
const { initJsPsych } = await import("jspsych");
const { randomization, version } = initJsPsych();
console.log("jspsych", version());

const seen = {};
const pair = [["a.png", "b.png"]];
for (const [name, values] of Object.entries({
  repeat: randomization.repeat(pair, 1),
  shuffle: randomization.shuffle(pair),
  sampleWithoutReplacement: randomization.sampleWithoutReplacement(pair, 1),
})) {
  seen[name] = `${JSON.stringify(values[0])}, a list: ${Array.isArray(values[0])}, length ${values[0].length}`;
  console.log(`${name}: ${seen[name]}`);
}
const expected = {
  repeat: '{"0":"a.png","1":"b.png"}, a list: false, length undefined',
  shuffle: '["a.png","b.png"], a list: true, length 2',
  sampleWithoutReplacement: '["a.png","b.png"], a list: true, length 2',
};
if (JSON.stringify(seen) !== JSON.stringify(expected)) {
  console.error("changed: expected", expected);
  process.exit(1);
}
process.exit(0);
JS
node try.mjs
