// What a study's pages send: to its server, or in a kit to this browser, which keeps it and saves it as a file.
"use strict";

{
  const { byId, el, quiet } = Turinglike;
  const RETRY = [500, 1000, 2000, 4000, 8000]; // ms between tries while the connection is lost
  const kept = byId("kit");
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  const waiting = new Set(); // what waits for the connection
  const notice = byId("notice");

  /** Say that something waits for the connection. The notice is written once, however many wait and however often each
   * tries: what is written there anew is read out anew. */
  function lost(which, text) {
    waiting.add(which);
    if (!notice.hidden && notice.textContent === text) return;
    notice.hidden = false;
    notice.textContent = text;
  }

  /** Something waits no more; the notice goes with the last. */
  function found(which) {
    waiting.delete(which);
    if (waiting.size || notice.hidden) return;
    notice.hidden = true;
    notice.textContent = "";
  }

  /** Wait, but no longer than until the browser has a network again: returns whether that came first. */
  function pause(ms) {
    return new Promise((resolve) => {
      const end = (isBack) => {
        clearTimeout(timer);
        removeEventListener("online", back);
        resolve(isBack);
      };
      const back = () => end(true);
      const timer = setTimeout(() => end(false), ms);
      addEventListener("online", back);
    });
  }

  /** POST until it is answered: a lost connection (`offline` says so), or a server that starts again, takes time.
   * `whenLost` is called at the first try that is not answered. */
  async function post(address, body, offline, whenLost = () => {}) {
    const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const which = Symbol(address);
    let tries = 0;
    for (;;) {
      const reply = await fetch(address, request).catch(() => null);
      const body = await reply?.json().catch(() => null); // a proxy says in its own words that we are away
      if (body && (reply.status < 502 || body.error.code === "full")) {
        found(which);
        if (!reply.ok) throw Object.assign(new Error(body.error.message), { code: body.error.code });
        return body;
      }
      if (!waiting.has(which)) whenLost();
      lost(which, offline);
      const isBack = await pause(RETRY[Math.min(tries, RETRY.length - 1)]);
      tries = isBack ? 0 : tries + 1;
    }
  }
  Object.assign(Turinglike, { found, lost, pause, post, wait });

  if (kept) {
    const about = JSON.parse(kept.textContent);
    const place = `turinglike-kit-${about.kit}`;
    const error = (code) => Object.assign(new Error(code), { code });
    const DONE = ["end", "declined", "left"];

    // Several tabs may have this file open: each call begins with what any of them has kept. Each has its own judge.
    const read = () => JSON.parse(localStorage.getItem(place) ?? '{"answers":{},"current":null}');
    const keep = (state) => localStorage.setItem(place, JSON.stringify(state));
    /** Of which judge this tab is; after the file is opened anew, of whom it was last. */
    const code = () => sessionStorage.getItem(place) ?? read().current;
    const free = (state) => about.judges.find((each) => !(each.judge in state.answers));

    function begin(state, judge) {
      state.current = judge;
      keep(state);
      sessionStorage.setItem(place, judge ?? "");
    }

    /** Where a judge is. */
    function viewOf(judge, state = read()) {
      if (!judge) return { kind: "welcome" };
      const answers = state.answers[judge];
      if (answers === "left") return { kind: "left", list: judge };
      if (answers.some(({ answer }) => answer.agree === false))
        return { kind: "declined", step: answers.length, list: judge };
      const { steps, end } = about.judges.find((each) => each.judge === judge);
      return steps[answers.length]?.view ?? end;
    }

    const calls = {
      now: () => viewOf(code()),
      join() {
        const state = read();
        const judge = free(state);
        if (!judge) throw error("kit_full"); // another tab had the last
        state.answers[judge.judge] = [];
        begin(state, judge.judge);
        return viewOf(judge.judge);
      },
      leave({ list }) {
        const state = read();
        state.answers[list] = "left";
        keep(state);
        return viewOf(list);
      },
      answer({ step, list, answer }) {
        const state = read();
        const answers = state.answers[list];
        const isNew = step === answers.length;
        if (answers === "left" || step > answers.length) throw error("not_yet");
        if (isNew) answers.push({ step, answer, at: new Date().toISOString() });
        keep(state);
        const { steps } = about.judges.find((each) => each.judge === list);
        return { new: isNew, told: [], truth: isNew ? steps[step].truth : null, next: viewOf(list) };
      },
    };

    async function download() {
      const judges = Object.entries(read().answers).map(([name, answers]) => ({ judge: name, answers }));
      const body = JSON.stringify({ kit: about.kit, judges });
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body)));
      const sha256 = [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      const file = new Blob([JSON.stringify({ schema: "turinglike.kit/1", sha256, body })], {
        type: "application/json",
      });
      const name = `answers-${about.kit}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.json`;
      el("a", { href: URL.createObjectURL(file), download: name }).click();
    }

    /** For the lab: save what is there, and make room for the next judge; within a list only if that is meant. */
    function buttons(phrase) {
      const { kind } = calls.now();
      const next = () => {
        if (!DONE.includes(kind) && !confirm(phrase("kit_next_sure"))) return;
        begin(read(), null);
        location.reload();
      };
      const on = kind !== "welcome" && quiet(phrase("kit_next"), next);
      return el("div.actions", quiet(phrase("kit_save"), download), on);
    }

    const isFull = () => !free(read());

    async function file(address) {
      const [, kind, data] = /^data:([^;]+);base64,(.*)$/.exec(about.files[address]);
      return new Blob([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], { type: kind });
    }

    const post = async (address, body) => calls[address](body);
    Object.assign(Turinglike, { kit: { about, buttons, file, isFull }, post });
  }
}
