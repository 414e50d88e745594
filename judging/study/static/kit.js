// The server's part of a study in a page that has none: who judges is kept by this browser, and saved as a file.
"use strict";

{
  const { el } = Turinglike;
  const kept = document.getElementById("kit");

  if (kept) {
    const about = JSON.parse(kept.textContent);
    const place = `turinglike-kit-${about.kit}`;
    const state = JSON.parse(localStorage.getItem(place) ?? '{"answers":{},"current":null}');
    const save = () => localStorage.setItem(place, JSON.stringify(state));
    const error = (code) => Object.assign(new Error(code), { code });

    function now() {
      if (state.current === null) return { kind: "welcome" };
      const judge = about.judges.find((one) => one.judge === state.current);
      const given = state.answers[judge.judge];
      if (given.some((one) => one.answer.agree === false)) return { kind: "declined", step: given.length };
      return judge.steps[given.length]?.view ?? judge.end;
    }

    const calls = {
      now,
      join() {
        const free = about.judges.find((one) => !(one.judge in state.answers));
        if (!free) throw error("full");
        state.current = free.judge;
        state.answers[free.judge] = [];
        save();
        return now();
      },
      answer({ step, answer }) {
        const given = state.answers[state.current];
        const isNew = step === given.length;
        if (step > given.length) throw error("not_yet");
        if (isNew) given.push({ step, answer, at: new Date().toISOString() });
        save();
        const judge = about.judges.find((one) => one.judge === state.current);
        return { new: isNew, told: [], truth: isNew ? judge.steps[step].truth : null, next: now() };
      },
    };

    async function download() {
      const judges = Object.entries(state.answers).map(([judge, answers]) => ({ judge, answers }));
      const body = JSON.stringify({ kit: about.kit, judges });
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body)));
      const sha256 = [...hash].map((one) => one.toString(16).padStart(2, "0")).join("");
      const file = new Blob([JSON.stringify({ schema: "turinglike.kit/1", sha256, body })], { type: "application/json" });
      const url = URL.createObjectURL(file);
      const name = `answers-${about.kit}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.json`;
      el("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    }

    /** For the lab: save what is there, and make room for the next judge. */
    function buttons(phrase) {
      const done = ["end", "declined"].includes(now().kind);
      const next = () => {
        state.current = null;
        save();
        location.reload();
      };
      return el(
        "div",
        { class: "actions" },
        el("button", { type: "button", class: "quiet", click: download }, phrase("kit_save")),
        done ? el("button", { type: "button", class: "quiet", click: next }, phrase("kit_next")) : null,
      );
    }

    async function file(address) {
      const [, kind, data] = /^data:([^;]+);base64,(.*)$/.exec(about.files[address]);
      return new Blob([Uint8Array.from(atob(data), (one) => one.charCodeAt(0))], { type: kind });
    }

    Turinglike.kit = { about, buttons, file, post: async (address, body) => calls[address](body) };
  }
}
