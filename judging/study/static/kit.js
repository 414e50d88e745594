// What a study's pages send: to its server, or in a kit to this browser, which keeps it and saves it as a file.
"use strict";

{
  const { byId, el, quiet } = Turinglike;
  const RETRY = [500, 1000, 2000, 4000, 8000]; // ms between tries while the connection is lost
  const kept = byId("kit");
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  function notice(text) {
    byId("notice").hidden = !text;
    byId("notice").textContent = text ?? "";
  }

  /** POST until it is answered: a lost connection (`offline` says so), or a server that starts again, takes time. */
  async function post(address, body, offline) {
    const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    for (let tries = 0; ; tries++) {
      const reply = await fetch(address, request).catch(() => null);
      const body = await reply?.json().catch(() => null); // a proxy says in its own words that we are away
      if (body && (reply.status < 502 || body.error.code === "full")) {
        notice(null);
        if (!reply.ok) throw Object.assign(new Error(body.error.message), { code: body.error.code });
        return body;
      }
      notice(offline);
      await wait(RETRY[Math.min(tries, RETRY.length - 1)]);
    }
  }
  Object.assign(Turinglike, { notice, post, wait });

  if (kept) {
    const about = JSON.parse(kept.textContent);
    const place = `turinglike-kit-${about.kit}`;
    const state = JSON.parse(localStorage.getItem(place) ?? '{"answers":{},"current":null}');
    const save = () => localStorage.setItem(place, JSON.stringify(state));
    const error = (code) => Object.assign(new Error(code), { code });
    const judge = () => about.judges.find((each) => each.judge === state.current);

    function now() {
      if (state.current === null) return { kind: "welcome" };
      const answers = state.answers[state.current];
      if (answers === "left") return { kind: "left" };
      if (answers.some(({ answer }) => answer.agree === false)) return { kind: "declined", step: answers.length };
      return judge().steps[answers.length]?.view ?? judge().end;
    }

    const calls = {
      now,
      join() {
        const free = about.judges.find((each) => !(each.judge in state.answers));
        if (!free) throw error("full");
        state.current = free.judge;
        state.answers[free.judge] = [];
        save();
        return now();
      },
      leave() {
        state.answers[state.current] = "left";
        save();
        return now();
      },
      answer({ step, answer }) {
        const answers = state.answers[state.current];
        const isNew = step === answers.length;
        if (step > answers.length) throw error("not_yet");
        if (isNew) answers.push({ step, answer, at: new Date().toISOString() });
        save();
        return { new: isNew, told: [], truth: isNew ? judge().steps[step].truth : null, next: now() };
      },
    };

    async function download() {
      const judges = Object.entries(state.answers).map(([name, answers]) => ({ judge: name, answers }));
      const body = JSON.stringify({ kit: about.kit, judges });
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body)));
      const sha256 = [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      const file = new Blob([JSON.stringify({ schema: "turinglike.kit/1", sha256, body })], {
        type: "application/json",
      });
      const name = `answers-${about.kit}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.json`;
      el("a", { href: URL.createObjectURL(file), download: name }).click();
    }

    /** For the lab: save what is there, and make room for the next judge. */
    function buttons(phrase) {
      const next = () => {
        state.current = null;
        save();
        location.reload();
      };
      const isDone = ["end", "declined", "left"].includes(now().kind);
      return el("div.actions", quiet(phrase("kit_save"), download), isDone && quiet(phrase("kit_next"), next));
    }

    async function file(address) {
      const [, kind, data] = /^data:([^;]+);base64,(.*)$/.exec(about.files[address]);
      return new Blob([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], { type: kind });
    }

    Object.assign(Turinglike, { kit: { about, buttons, file }, post: async (address, body) => calls[address](body) });
  }
}
