// A conversation, by turns or whenever they like, and the lobby before it.
"use strict";

{
  const { el, said } = Turinglike;

  /** Shows a participant's conversation, from the lobby to its end; `tools` are what the pages share. */
  async function talk(view, { actions, button, off, phrase, post, put, send, show }) {
    const list = el("ol", { class: "chat", tabindex: 0, "aria-live": "polite", "aria-label": phrase("talk_title") });
    const told = el("p", { class: "note", role: "status" });
    const left = el("p", { class: "small" });
    const area = el("textarea", { id: "message", rows: 3, maxlength: 2000 });
    const press = el("button", { type: "submit" }, phrase("send"));
    const form = el("form", { class: "write", autocomplete: "off" }, el("label", { for: "message" }, phrase("message")), area, el("div", { class: "line" }, press)); // prettier-ignore
    let shown = -1;
    let isBurst = false;
    let mine = 0; // messages of the participant's own that are known
    put(phrase("lobby_title"), el("p", null, phrase("lobby")));

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = area.value.trim();
      if (!text || press.getAttribute("aria-disabled") === "true") return;
      off(press);
      area.value = "";
      const { why } = await post("say", { step: view.step, turn: isBurst ? mine : shown, text });
      if (!why) return;
      told.textContent = phrase(why);
      area.value = [text, area.value].filter(Boolean).join(" ");
      off(press, !isBurst);
    });
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      form.requestSubmit();
    });

    function draw(found) {
      if (shown < 0)
        put(
          phrase("talk_title"),
          found.topic ? el("p", null, phrase("talk_topic", found)) : "",
          left,
          list,
          told,
          form,
        );
      for (const one of found.messages.slice(Math.max(shown, 0))) {
        const isMine = one.speaker === found.mine;
        const who = el("span", { class: "who" }, phrase(isMine ? "you" : "other"));
        list.append(el("li", { class: isMine ? "right" : "left" }, who, el("p", { class: "bubble", dir: "auto" }, said(one.text)))); // prettier-ignore
      }
      shown = found.messages.length;
      isBurst = found.burst;
      mine = found.messages.filter((one) => one.speaker === found.mine).length;
      left.textContent = phrase("talk_left", found);
      told.textContent = isBurst ? phrase("burst") : phrase(found.my_turn ? "your_turn" : "their_turn");
      off(press, !found.my_turn);
      if (found.my_turn) area.focus({ preventScroll: true });
      list.lastElementChild?.scrollIntoView({ block: "nearest" });
    }

    function ended(found) {
      form.remove();
      left.remove();
      const words = { over: "talk_over", void: "partner_left", nobody: "nobody" }[found.state];
      if (found.state === "nobody") put(phrase("talk_title"));
      told.remove();
      const page = document.getElementById("page");
      page.append(el("p", { class: "truth", role: "status" }, phrase(words)));
      const go = (answer) => (pressed) => {
        off(pressed);
        send(view, found.state === "nobody" ? { ...answer, nobody: true } : answer);
      };
      if (found.state === "over" && view.guess) {
        page.append(
          el("p", null, phrase("guess")),
          actions(button("human", go({ guess: "human" })), button("machine", go({ guess: "machine" }))),
        );
      } else page.append(actions(button("next", go({}))));
    }

    for (;;) {
      const found = await post("talk", { step: view.step, after: shown });
      if (found.state === "waiting") continue;
      if (found.state !== "nobody") draw(found);
      if (found.state !== "open") return ended(found);
    }
  }

  Object.assign(Turinglike, { talk });
}
