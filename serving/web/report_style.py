"""The style sheet of the report: one column on a phone, two on a desk; light and dark; no scripts, no fonts to load."""

STYLE = """
:root { color-scheme: light dark; --bg: #fbfaf8; --card: #fff; --ink: #1d1c1a; --soft: #605d58; --line: #d9d5cd;
  --accent: #0b5cad; --bad: #a3200d; --badbg: #fdeeea; --warn: #7a4b00; --warnbg: #fff3d6; --good: #1d6b35; }
@media (prefers-color-scheme: dark) { :root { --bg: #161514; --card: #201f1d; --ink: #ece9e4; --soft: #aaa59c;
  --line: #3b3935; --accent: #7db8f5; --bad: #ff9d8a; --badbg: #3a1d18; --warn: #f3c46b; --warnbg: #35290f;
  --good: #86d29a; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--bg); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 84rem; margin: 0 auto; padding: .5rem 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 1.75rem 0 .75rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { font-size: 1.1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h4 { font-size: 1rem; margin: 1rem 0 .5rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible, input:focus-visible, .wide:focus-visible { outline: 3px solid var(--accent);
  outline-offset: 2px; }
.skip { position: absolute; left: -100rem; } .skip:focus { left: 1rem; top: .5rem; background: var(--card);
  padding: .5rem; z-index: 2; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .86em; }
code { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--bg); border: 1px solid var(--line);
  border-radius: .4rem; padding: .5rem; max-height: 24rem; overflow: auto; margin: .4rem 0; }
.said { overflow-wrap: anywhere; white-space: pre-wrap; }
small, .small, .note, dt, caption { color: var(--soft); } .small, .note, small { font-size: .86rem; }
dl { margin: .4rem 0; font-size: .9rem; } dl > div { padding-left: 1rem; text-indent: -1rem; }
dt, dd { display: inline; } dt::after { content: ": "; } dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .35rem 0; font-size: .9rem; } summary { cursor: pointer; color: var(--accent); }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: 0 .55rem;
  font-size: .78rem; line-height: 1.5; white-space: nowrap; color: var(--soft); }
.badge.warn { color: var(--warn); background: var(--warnbg); white-space: normal; }
.badge.alert { color: var(--bad); background: var(--badbg); font-weight: 700; }
.badge.good { color: var(--good); }
.box-notice { border-left: .3rem solid var(--warn); background: var(--warnbg); padding: .6rem .8rem; margin: .6rem 0;
  border-radius: 0 .4rem .4rem 0; overflow-wrap: anywhere; }
.box-notice.bad { border-color: var(--bad); background: var(--badbg); }
.agents, .cards { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  align-items: start; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .7rem .85rem;
  min-width: 0; }
.card > h3, .card > h5 { display: flex; gap: .4rem; flex-wrap: wrap; align-items: center; margin: 0 0 .4rem;
  font-size: .95rem; overflow-wrap: anywhere; }
.card.failed { border-color: var(--bad); } .card.rejected { border-color: var(--warn); }
.shown { border-top: 1px solid var(--line); padding: 1.25rem 0; }
.shown:first-of-type { border-top: 0; }
@media (min-width: 62rem) { .shown { display: grid; grid-template-columns: 20rem minmax(0, 1fr); gap: 1.5rem; }
  .shown > h3 { grid-column: 1 / -1; } .picture > svg { position: sticky; top: 1rem; } }
.asked > h4:first-child { margin-top: 0; }
.canvas { display: block; width: 100%; height: auto; max-height: 75vh; border-radius: .35rem; background: #8884; }
.nothing { fill: #8883; }
.canvas .box { fill: none; stroke: #ff2e88; stroke-width: calc(var(--w) * 1.4); }
.canvas .tag { fill: #fff; stroke: #000; stroke-width: calc(var(--w) * 1.2); paint-order: stroke; font-weight: 700; }
.canvas .window { fill: none; stroke: #fff; stroke-width: var(--w); stroke-dasharray: calc(var(--w) * 4); }
.canvas polyline { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.canvas .under { stroke: #000a; stroke-width: calc(var(--w) * 2.6); }
.canvas .path { stroke: #ffd400; stroke-width: calc(var(--w) * 1.3); }
.canvas .fixation { fill: #111d; stroke: #ffd400; stroke-width: calc(var(--w) * 1.2); }
.canvas .forced { fill: #0b5cade6; stroke: #fff; stroke-dasharray: calc(var(--w) * 3); }
.canvas .number { fill: #fff; text-anchor: middle; font-weight: 700; font-family: system-ui, sans-serif; }
.canvas .ring { display: none; fill: none; stroke: #ffec00; stroke-width: calc(var(--w) * 4); }
.animate { font-size: .86rem; color: var(--soft); display: inline-block; padding: .2rem 0; cursor: pointer; }
.animate:has(:checked) + .canvas .ring { display: inline; }
.animate:has(:checked) + .canvas :is(.fixation, .number, .under, .path) { opacity: .25; }
.still { display: none; font-size: .86rem; color: var(--soft); }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; }
  .animate:has(:checked) + .canvas .ring { display: none; }
  .animate:has(:checked) + .canvas :is(.fixation, .number, .under, .path) { opacity: 1; }
  .animate:has(:checked) ~ .still { display: block; } }
.swatch { display: inline-block; width: 1em; height: 1em; border-radius: .2em; border: 1px solid #8889;
  vertical-align: -.12em; margin-right: .35em; flex: none; }
.word { font-size: 1.2rem; margin: 0 0 .4rem; } .word .swatch { width: 1.5em; height: 1.5em; vertical-align: -.4em; }
.bar { display: flex; height: 1.6rem; border-radius: .35rem; overflow: hidden; border: 1px solid var(--line); }
.bar span { flex: 0 1 0; min-width: 2px; }
.legend { list-style: none; margin: .4rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: .1rem .8rem;
  font-size: .84rem; }
blockquote { margin: .2rem 0; padding-left: .7rem; border-left: .2rem solid var(--line); font-size: 1.05rem; }
.labels, .points { margin: .3rem 0; padding-left: 1.6rem; } .points { columns: 8rem; font-size: .84rem; }
.chat { list-style: none; margin: .4rem 0; padding: 0; display: flex; flex-direction: column; gap: .5rem;
  max-height: 36rem; overflow: auto; }
.chat li { max-width: 85%; } .chat .right { align-self: flex-end; text-align: right; }
.chat p { display: inline-block; text-align: start; margin: 0; padding: .4rem .7rem; border-radius: .9rem;
  background: #8882; overflow-wrap: anywhere; } .chat .right p { background: #0b5cad2e; }
.chat .who { display: block; font-size: .8rem; color: var(--soft); }
.people:not(:has(.canvas, .chat, blockquote)) { grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); }
.conversation .cards { grid-template-columns: minmax(0, 42rem); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; min-width: 100%; }
caption { text-align: left; padding-bottom: .3rem; } th, td { text-align: left; padding: .35rem .7rem;
  border-bottom: 1px solid var(--line); vertical-align: top; } td.n { text-align: right; }
th { font-weight: 600; } tbody th small { font-weight: 400; }
@media (max-width: 48rem) { table, caption, tbody, tr, th, td { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tr { border-bottom: 1px solid var(--line); padding: .45rem 0; } th, td { border: 0; padding: .1rem 0; }
  th, td { overflow-wrap: anywhere; }
  td::before { content: attr(data-column) ": "; color: var(--soft); } }
.jump { columns: 14rem; font-size: .88rem; padding-left: 1.2rem; overflow-wrap: anywhere; }
.bad { color: var(--bad); }
@media print { .animate, .skip { display: none; } .card { break-inside: avoid; } }
"""
