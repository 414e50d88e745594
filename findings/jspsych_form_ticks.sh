#!/usr/bin/env bash
set -euo pipefail
# Package: @jspsych/plugin-survey-html-form 2.1.0 with jspsych 8.3.0, run in node with jsdom 29.1.1 in place of a browser.
# Found: of several ticked boxes that share one name, as HTML groups them, only the last one is kept.
# Expected: all ticked values are in the data; the plugin itself gathers them all before it stores them.
# Seen: dog and cat are ticked; the data say {"animal": "cat"}. With dataAsArray: true both are there. There is no warning.
# Source: the plugin's description says that each input has a key of its own with whatever the participant answered there.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes > /dev/null
npm install --silent --no-audit --no-fund --save-exact jspsych@8.3.0 @jspsych/plugin-survey-html-form@2.1.0 jsdom@29.1.1
cat > try.mjs <<'JS'
import { JSDOM } from "jsdom";

const dom = new JSDOM("<!doctype html><body></body>", { url: "https://example.org/", pretendToBeVisual: true });
for (const name of ["window", "document", "HTMLElement", "Element", "Node", "Event"]) globalThis[name] = dom.window[name];
const { initJsPsych } = await import("jspsych");
const form = (await import("@jspsych/plugin-survey-html-form")).default;
const limit = setTimeout(() => {
  console.error("changed: no form after 60 s");
  process.exit(1);
}, 60000);

async function answer(dataAsArray) {
  const jsPsych = initJsPsych();
  const boxes = ["dog", "cat", "cow"].map((animal) => `<input type="checkbox" name="animal" value="${animal}">`);
  const done = jsPsych.run([{ type: form, html: boxes.join(""), dataAsArray }]);
  while (!document.querySelector("input[value=cow]")) await new Promise((go) => setTimeout(go, 20));
  document.querySelector("input[value=dog]").checked = true;
  document.querySelector("input[value=cat]").checked = true;
  document.querySelector("form").dispatchEvent(new Event("submit", { cancelable: true, bubbles: true }));
  await done;
  document.body.innerHTML = "";
  const response = JSON.stringify(jsPsych.data.get().values()[0].response);
  console.log(`dog and cat ticked, dataAsArray ${dataAsArray}: ${response}`);
  return response;
}

console.log("jspsych", initJsPsych().version(), "survey-html-form", form.info.version);
const seen = [await answer(false), await answer(true)];
clearTimeout(limit);
const expected = ['{"animal":"cat"}', '[{"name":"animal","value":"dog"},{"name":"animal","value":"cat"}]'];
if (JSON.stringify(seen) !== JSON.stringify(expected)) {
  console.error("changed: expected", expected);
  process.exit(1);
}
process.exit(0);
JS
node try.mjs
