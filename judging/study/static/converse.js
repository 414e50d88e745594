// A conversation, by turns or whenever they like, and the lobby before it.
"use strict";

{
  const { bubble, el, lineOf, record, unsentBubble, writer } = Turinglike;

  /** Shows a participant's conversation, from the lobby to its end; `tools` are what the pages share. */
  async function talk(view, { actions, button, counted, drafts, go, phrase, post, put }) {
    const list = el("ol.chat", { tabindex: 0, "aria-live": "polite", "aria-label": phrase("talk_title") });
    const status = el("p.note", { role: "status" });
    const left = el("p.small");
    let isBurst = false;
    let [shown, mine] = [-1, 0]; // messages that are seen, and the participant's of them
    let isSending = false;
    let unsent = null; // the participant's message, while it waits for the connection
    put(phrase("lobby_title"), el("p", phrase("lobby")));

    const place = writer(phrase("message"), phrase("send"), async (text) => {
      place.off(true);
      place.area.value = ""; // it stays a draft until the server has it
      isSending = true;
      const turn = isBurst ? mine : shown;
      const body = { step: view.step, list: view.list, turn, text, traces: trace.take(text) };
      const { why } = await post("say", body, () => showUnsent(text));
      isSending = false;
      if (why) {
        showUnsent(null);
        status.textContent = phrase(why);
        place.restore(text);
        trace.giveBack();
      } else trace.done();
      drafts.save();
      if (isBurst) place.off(false);
    });

    const trace = record(view, place.form);

    /** Show a message that waits for the connection; null for none. */
    function showUnsent(text) {
      unsent?.remove();
      unsent = text === null ? null : unsentBubble("li", [phrase("you")], phrase("not_sent"), text);
      if (unsent === null) return;
      status.textContent = "";
      list.append(unsent);
      unsent.scrollIntoView({ block: "nearest" });
    }

    function draw(talk) {
      const topic = talk.topic ? el("p", phrase("talk_topic", talk)) : "";
      if (shown < 0) {
        put(phrase("talk_title"), topic, lineOf(view), left, list, status, place.form);
        forgetSent(talk);
      }
      const news = talk.messages.slice(Math.max(shown, 0));
      if (news.some(({ speaker }) => speaker === talk.mine)) showUnsent(null);
      for (const { speaker, text } of news)
        list.append(bubble("li", speaker === talk.mine, [phrase(speaker === talk.mine ? "you" : "other")], text));
      if (unsent !== null && news.length) list.append(unsent);
      shown = talk.messages.length;
      isBurst = talk.burst;
      mine = talk.messages.filter((message) => message.speaker === talk.mine).length;
      left.textContent = counted("talk_left", talk.left, talk);
      status.textContent = phrase(isBurst ? "burst" : talk.my_turn ? "your_turn" : "their_turn");
      place.off(!talk.my_turn || isSending);
      if (talk.my_turn) place.area.focus({ preventScroll: true });
      list.lastElementChild?.scrollIntoView({ block: "nearest" });
    }

    /** A draft that the server has, as the page was loaded again before it knew, is no draft. */
    function forgetSent(talk) {
      const last = talk.messages.filter(({ speaker }) => speaker === talk.mine).at(-1);
      if (last?.text !== place.area.value.trim().split(/\s+/).join(" ")) return;
      place.area.value = "";
      trace.take("");
      trace.done();
      drafts.save();
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
      trace.end();
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
