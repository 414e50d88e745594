// The viewer: which of its parts is shown, and the keys.
"use strict";

{
  const { byId, el } = Turinglike;
  const VIEWS = ["statistics", "list", "one", "provenance"];
  const made = new Set();

  async function show() {
    Turinglike.read();
    const view = VIEWS.includes(Turinglike.state.view) ? Turinglike.state.view : "statistics";
    const start = performance.now();
    byId("told").textContent = "";
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
      if (current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      if (link.hash.includes("view=list")) link.hash = Turinglike.forList({});
    }
    if (Turinglike.state.who === "" && shown !== view + Turinglike.state.stimulus + Turinglike.state.page)
      scrollTo(0, 0);
    shown = view + Turinglike.state.stimulus + Turinglike.state.page;
    performance.measure(`show ${view}`, { start });
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
    if (event.target.closest("input, select, textarea, .wide, .chat, pre")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key.length === 1) event.preventDefault();
    KEYS[event.key](Turinglike.state.view);
  });

  async function begin() {
    try {
      Turinglike.index = await Turinglike.load("index");
    } catch (error) {
      byId("told").textContent = error.message;
      return;
    }
    const { title, made: how, notices } = Turinglike.index;
    document.title = title;
    byId("title").textContent = title;
    byId("made").textContent = how;
    byId("notices").replaceChildren(...notices.map((text) => el("div.box-notice", text)));
    addEventListener("hashchange", show);
    await show();
    performance.mark("first screen");
  }
  begin();
}
