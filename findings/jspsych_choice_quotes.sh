#!/usr/bin/env bash
set -euo pipefail
# Package: @jspsych/plugin-survey-multi-choice 2.2.1, beside plugin-survey-multi-select 2.1.1, with jspsych 8.3.0 in node (jsdom 29.1.1).
# Found: the chosen option is stored only up to its first double quotation mark.
# Expected: the whole text of the option, as the plugin for several choices stores it.
# Seen: of the captions 'a sign that says "stop"' and 'a sign that says "go"' the second is chosen. The data say "a sign that says ",
#   which both captions share. Only response_index (1) tells them apart.
# Source: the plugin's description says that the response to a question is the text of the option that was selected.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes > /dev/null
npm install --silent --no-audit --no-fund --save-exact jspsych@8.3.0 @jspsych/plugin-survey-multi-choice@2.2.1 \
  @jspsych/plugin-survey-multi-select@2.1.1 jsdom@29.1.1
cat > try.mjs <<'JS'
import { JSDOM } from "jsdom";

const dom = new JSDOM("<!doctype html><body></body>", { url: "https://example.org/", pretendToBeVisual: true });
for (const name of ["window", "document", "HTMLElement", "Element", "Node", "Event"]) globalThis[name] = dom.window[name];
const { initJsPsych } = await import("jspsych");
const choice = (await import("@jspsych/plugin-survey-multi-choice")).default;
const select = (await import("@jspsych/plugin-survey-multi-select")).default;
const limit = setTimeout(() => {
  console.error("changed: no form after 60 s");
  process.exit(1);
}, 60000);
const options = ['a sign that says "stop"', 'a sign that says "go"'];

async function answer(type) {
  const jsPsych = initJsPsych();
  const done = jsPsych.run([{ type, questions: [{ prompt: "Which caption?", options, name: "caption" }] }]);
  const inputs = () => document.querySelectorAll("input[type=radio], input[type=checkbox]");
  while (inputs().length < 2) await new Promise((go) => setTimeout(go, 20));
  inputs()[1].checked = true;
  document.querySelector("form").dispatchEvent(new Event("submit", { cancelable: true, bubbles: true }));
  await done;
  document.body.innerHTML = "";
  const { response, response_index } = jsPsych.data.get().values()[0];
  const line = JSON.stringify({ response, response_index });
  console.log(`${type.info.name} ${type.info.version}: ${line}`);
  return line;
}

console.log("jspsych", initJsPsych().version());
const seen = [await answer(choice), await answer(select)];
clearTimeout(limit);
const expected = [
  '{"response":{"caption":"a sign that says "},"response_index":[1]}',
  '{"response":{"caption":["a sign that says \\"go\\""]}}',
];
if (JSON.stringify(seen) !== JSON.stringify(expected)) {
  console.error("changed: expected", expected);
  process.exit(1);
}
process.exit(0);
JS
node try.mjs
