// A conversation, by turns or whenever they like, and the lobby before it.
"use strict";

{
  const { bubble, el, writer } = Turinglike;

  /** Shows a participant's conversation, from the lobby to its end; `tools` are what the pages share. */
  async function talk(view, { actions, button, counted, go, phrase, post, put }) {
    const list = el("ol.chat", { tabindex: 0, "aria-live": "polite", "aria-label": phrase("talk_title") });
    const status = el("p.note", { role: "status" });
    const left = el("p.small");
    let isBurst = false;
    let [shown, mine] = [-1, 0]; // messages that are seen, and the participant's of them
    put(phrase("lobby_title"), el("p", phrase("lobby")));

    const place = writer(phrase("message"), phrase("send"), async (text) => {
      place.off(true);
      place.area.value = "";
      const { why } = await post("say", { step: view.step, list: view.list, turn: isBurst ? mine : shown, text });
      if (!why) return;
      status.textContent = phrase(why);
      place.restore(text);
      place.off(!isBurst);
    });

    function draw(talk) {
      const topic = talk.topic ? el("p", phrase("talk_topic", talk)) : "";
      if (shown < 0) put(phrase("talk_title"), topic, left, list, status, place.form);
      for (const { speaker, text } of talk.messages.slice(Math.max(shown, 0)))
        list.append(bubble("li", speaker === talk.mine, [phrase(speaker === talk.mine ? "you" : "other")], text));
      shown = talk.messages.length;
      isBurst = talk.burst;
      mine = talk.messages.filter((message) => message.speaker === talk.mine).length;
      left.textContent = counted("talk_left", talk.left, talk);
      status.textContent = phrase(isBurst ? "burst" : talk.my_turn ? "your_turn" : "their_turn");
      place.off(!talk.my_turn);
      if (talk.my_turn) place.area.focus({ preventScroll: true });
      list.lastElementChild?.scrollIntoView({ block: "nearest" });
    }

    /** What is told of a conversation that goes on no more; a machine's fault is not told as somebody who left. */
    function ending({ state, void: why }, asks) {
      if (state === "over") return phrase(asks ? "talk_question" : "talk_over");
      if (state === "void") return phrase({ fault: "talk_failed", away: "talk_away" }[why] ?? "partner_left");
      return phrase(state);
    }

    function ended(talk) {
      const { state } = talk;
      const asks = state === "over" && view.guess;
      if (state === "nobody") put(phrase("talk_title"));
      for (const node of [place.form, left, status]) node.remove();
      const end = [el("p.truth", { role: "status" }, ending(talk, asks))];
      if (asks) {
        const age = el("input", { maxlength: 40, size: 6 });
        const choice = (guess, sex) => button(`${sex}_${guess}`, (node) => go(view, { guess, sex, age: age.value })(node));
        const guesses = ["human", "machine"].flatMap((guess) => ["female", "male"].map((sex) => choice(guess, sex)));
        end.push(el("p", el("label", phrase("other_age"), " ", age)), el("p", phrase("guess")), actions(...guesses));
      } else end.push(actions(button("next", go(view, state === "nobody" ? { nobody: true } : {}))));
      document.getElementById("page").append(...end);
    }

    for (;;) {
      const talk = await post("talk", { step: view.step, list: view.list, after: shown });
      if (talk.state === "waiting") continue;
      if (talk.state !== "nobody") draw(talk);
      if (talk.state !== "open") return ended(talk);
    }
  }

  Object.assign(Turinglike, { talk });
}
