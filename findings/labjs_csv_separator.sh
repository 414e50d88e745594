#!/usr/bin/env bash
set -euo pipefail
# Package: lab.js 20.2.4 from npm, run in node with jsdom 29.1.1 in place of a browser; read again by Python's csv.
# Found: exportCsv takes a separator, but it puts quotation marks only around cells that hold a comma, a quotation mark or a line feed.
# Expected: with ";" (for a spreadsheet in much of Europe) a cell that holds ";" is quoted, so that each row has three cells.
# Seen: the answer "salt; sand" becomes two cells, the reaction time moves one column on, and no error is raised.
# Source: exportCsv(separator) in src/data.js, and escapeCsvCell there, which says that it follows RFC 4180.
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
const store = new lab.data.Store();
store.commit({ sender: "word", response: "salt; sand", rt: 512 });
store.commit({ sender: "word", response: "waves, wind", rt: 634 });
fs.writeFileSync("comma.csv", store.exportCsv());
fs.writeFileSync("semicolon.csv", store.exportCsv(";"));
process.exit(0);
JS
node try.cjs
python3 - <<'PY'
import csv
import sys

seen = {}
for name, separator in (("comma.csv", ","), ("semicolon.csv", ";")):
    with open(name, newline="", encoding="utf-8") as file:
        seen[name] = list(csv.reader(file, delimiter=separator))
    print(name, seen[name])
expected = {
    "comma.csv": [["sender", "response", "rt"], ["word", "salt; sand", "512"], ["word", "waves, wind", "634"]],
    "semicolon.csv": [["sender", "response", "rt"], ["word", "salt", " sand", "512"], ["word", "waves, wind", "634"]],
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
