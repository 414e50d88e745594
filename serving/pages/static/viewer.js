// The viewer: which of its parts is shown, and the keys.
"use strict";

{
  const { byId, el, quote } = Turinglike;
  const FOLLOWED = 5000; // milliseconds between questions whether the runs have changed
  const VIEWS = ["list", "one", "statistics", "provenance"];
  const made = new Set();

  async function show() {
    const left = Turinglike.state.view === "one" ? Turinglike.numberOf(Turinglike.state) : -1;
    Turinglike.read();
    const view = VIEWS.includes(Turinglike.state.view) ? Turinglike.state.view : "list";
    const isHere = Turinglike.index.size === undefined || Turinglike.isPlain();
    byId("told").textContent = isHere ? "" : "Loading …"; // the first rows alone know nothing of what is chosen
    if (!isHere) return;
    try {
      if (view === "one") await Turinglike.one();
      else if (view === "list") Turinglike.list();
      else if (!made.has(view)) byId(view).replaceChildren(el("div", Turinglike[view]()));
      made.add(view);
    } catch (error) {
      byId("told").textContent = `This cannot be shown: ${error.message}`;
      throw error;
    }
    for (const name of VIEWS) byId(name).hidden = name !== view;
    for (const link of byId("tabs").children) {
      const current = new URLSearchParams(link.hash.slice(1)).get("view") === (view === "one" ? "list" : view);
      link.ariaCurrent = current ? "page" : null;
      if (link.hash.includes("view=list")) link.hash = Turinglike.forList({});
    }
    if (Turinglike.state.who === "" && shown !== view + Turinglike.state.stimulus + Turinglike.state.page)
      scrollTo(0, 0);
    shown = view + Turinglike.state.stimulus + Turinglike.state.page;
    if (view === "list" && left >= 0) Turinglike.focusRow(Turinglike.index.stimuli.row[left]);
  }
  let shown = "";

  const KEYS = {
    "/": (view) => {
      if (view === "list") byId("q").focus();
      else {
        addEventListener("hashchange", () => setTimeout(() => byId("q").focus(), 0), { once: true });
        location.hash = Turinglike.forList({});
      }
    },
    j: (view) => (view === "one" ? press("#one .next") : Turinglike.moveRow(1)),
    k: (view) => (view === "one" ? press("#one .before") : Turinglike.moveRow(-1)),
    ArrowRight: (view) => (view === "one" ? press("#one .next") : Turinglike.turnPage(1)),
    ArrowLeft: (view) => (view === "one" ? press("#one .before") : Turinglike.turnPage(-1)),
    Escape: (view) => view === "one" && press("#one .back"),
  };
  const press = (what) => document.querySelector(what)?.click();

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
    if (event.defaultPrevented) return; // the grid has taken it
    if (event.key.startsWith("Arrow") && event.target.closest(".grid")) return; // which scrolls by them
    if (event.target.closest("input, select, textarea, .wide, .chat, pre")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key.length === 1) event.preventDefault();
    KEYS[event.key](Turinglike.state.view);
  });

  async function begin() {
    addEventListener("hashchange", show);
    try {
      await renew();
    } catch (error) {
      byId("told").textContent = error.message;
      throw error;
    }
    if (Turinglike.index.stamp) setTimeout(follow, FOLLOWED);
  }

  async function renew() {
    const isFirst = Turinglike.index === undefined;
    const index = await Turinglike.load("index");
    if (index.size === undefined) await use(index);
    else {
      if (isFirst && Turinglike.isPlain()) await use(index); // its first rows, at once
      await use(await Turinglike.load("whole"));
    }
  }

  async function use(index) {
    Turinglike.index = index;
    const { title, made: how, notices } = Turinglike.index;
    document.title = title;
    byId("title").textContent = title;
    byId("made").textContent = how;
    byId("notices").replaceChildren(...notices.map((text) => el("div.box-notice", quote(text))));
    Turinglike.progress();
    Turinglike.forget();
    made.clear();
    if (!byId("list").contains(document.activeElement)) byId("list").replaceChildren(); // nobody chooses just now
    const isInGrid = document.activeElement.closest(".grid") !== null; // which keeps the focus itself
    const focused = document.activeElement.getAttribute("href");
    await show();
    performance.mark(index.size === undefined ? "first screen" : "first rows");
    if (focused && !isInGrid) [...document.links].findLast((link) => link.getAttribute("href") === focused)?.focus();
  }

  /** Take in what runs that go on have written meanwhile, as long as their server is there. */
  async function follow() {
    const start = performance.now();
    if ((await Turinglike.load("stamp")) !== Turinglike.index.stamp) await renew();
    setTimeout(follow, FOLLOWED + 3 * (performance.now() - start)); // large runs less often
  }
  begin();
}
