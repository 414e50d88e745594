#!/usr/bin/env bash
set -euo pipefail
# Package: jspsych 8.3.0 from npm, run in node with jsdom 29.1.1 in place of a browser.
# Found: the summaries of a column of data do not agree on what a time-out is. jsPsych stores it as a reaction time of null.
# Expected: mean, median, minimum and standard deviation leave the time-outs out, or all of them count them.
# Seen: of 500, 600, 700 and two time-outs the mean is 600, so it leaves them out. The other three count them as 0 milliseconds:
#   the median is 500, the minimum 0 and the standard deviation 430.12. Without the time-outs these are 600, 500 and 100.
# Source: jsPsych's reference (jspsych-data) says of each that it is taken of the values in the column, with rt as its example.
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
const jsPsych = initJsPsych();
console.log("jspsych", jsPsych.version());

function summary(times) {
  const data = jsPsych.data.get().filterCustom(() => false);
  for (const rt of times) data.push({ rt });
  const column = data.select("rt");
  const line = `mean ${column.mean()} median ${column.median()} min ${column.min()} sd ${column.sd().toFixed(2)}`;
  console.log(JSON.stringify(times), line);
  return line;
}

const seen = [summary([500, 600, 700]), summary([500, 600, 700, null, null])];
const expected = ["mean 600 median 600 min 500 sd 100.00", "mean 600 median 500 min 0 sd 430.12"];
if (JSON.stringify(seen) !== JSON.stringify(expected)) {
  console.error("changed: expected", expected);
  process.exit(1);
}
process.exit(0);
JS
node try.mjs
