// An online test: a judge, or an agent who does not see what the other one answers; and the lobby before it.
"use strict";

{
  const { el, said } = Turinglike;

  /** Shows a participant's test, from the lobby to its end; `tools` are what the pages share. */
  async function test(view, { actions, again, button, failed, off, paragraphs, phrase, post, put, send }) {
    const top = el("p", { class: "small", role: "status" });
    const list = el("div", { class: "exchanges", "aria-live": "polite" });
    const told = el("p", { class: "note", role: "status" });
    const place = el("div");
    let page = ""; // what is up: the lobby, the part to be read, or the test
    let formOf = ""; // the act and turn that the form is for

    async function act(found, more, press) {
      off(press);
      try {
        const { why } = await post("act", { test: found.test, act: found.act, turn: found.turn, ...more });
        if (!why || why === "test_void") return;
        told.textContent = phrase(why, view);
        off(press, false);
      } catch (error) {
        await failed(error);
      }
    }

    function heading(found) {
      return phrase(`test_${found.role}`);
    }

    function read(found) {
      const begin = button("test_begin", (pressed) => act(found, {}, pressed));
      put(heading(found), ...paragraphs(found.text), told, actions(begin));
    }

    /** What each has said: of the judge's two agents beside each other. */
    function exchange(one, number, found) {
      const judges = found.role === "judge";
      const bubble = (who, side, text) =>
        el("div", { class: side }, el("span", { class: "who" }, who), el("p", { class: "bubble", dir: "auto" }, said(text)));
      const parts = [bubble(phrase(judges ? "you" : "the_judge"), judges ? "right" : "left", one.question)];
      if (judges && one.answers.length) {
        const both = one.answers.map((text, at) => bubble(phrase("agent_name", { number: at + 1 }), "left", text));
        parts.push(el("div", { class: "both" }, ...both));
      } else if (one.answers.length) parts.push(bubble(phrase("you"), "right", one.answers[0]));
      const verdict = found.verdicts.find((given) => given.after === number);
      if (verdict) parts.push(el("p", { class: "note" }, phrase("said_human", verdict)));
      return el("section", { class: "chat" }, ...parts);
    }

    function writing(found) {
      const asks = found.act === "ask";
      const area = el("textarea", { id: "message", rows: 3, maxlength: 2000 });
      const press = el("button", { type: "submit" }, phrase("send"));
      const count = el("p", { class: "note", role: "status" });
      const most = view.words_below - 1;
      const words = () => area.value.split(/\s+/).filter((one) => one).length;
      const tooMany = () => !asks && words() > most;
      const look = () => {
        if (asks) return;
        count.textContent = tooMany() ? phrase("too_many_words", view) : phrase("words_of", { words: words(), most });
        count.classList.toggle("bad", tooMany());
      };
      const form = el("form", { class: "write", autocomplete: "off" }, el("label", { for: "message" }, phrase(asks ? "question" : "own_answer")), area, count, el("div", { class: "line" }, press)); // prettier-ignore
      area.addEventListener("input", look);
      area.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        form.requestSubmit();
      });
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const text = area.value.trim();
        if (text && !tooMany() && press.getAttribute("aria-disabled") !== "true") act(found, { text }, press);
      });
      look();
      return form;
    }

    function judging(found) {
      const press = el("button", { type: "submit" }, phrase("next"));
      const options = [1, 2].map((side) =>
        el("label", null, el("input", { type: "radio", name: "human", value: side }), ` ${phrase("agent_name", { number: side })}`), // prettier-ignore
      );
      const area = el("textarea", { id: "reason", name: "reason", rows: 2, maxlength: 2000 });
      const form = el(
        "form",
        { autocomplete: "off", novalidate: true },
        el("fieldset", null, el("legend", null, phrase("which_human")), el("div", { class: "options" }, ...options)),
        el("div", { class: "field" }, el("label", { for: "reason" }, phrase("reason")), area),
        actions(press),
      );
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        if (press.getAttribute("aria-disabled") === "true") return;
        const human = Number(new FormData(form).get("human"));
        if (human) act(found, { human, reason: area.value }, press);
        else told.textContent = phrase("incomplete");
      });
      return form;
    }

    function draw(found) {
      if (page !== "test") {
        const part = el("details", null, el("summary", null, phrase("test_part")), ...paragraphs(found.text));
        put(heading(found), part, top, list, told, place);
        page = "test";
      }
      top.textContent = phrase("test_left", found);
      list.replaceChildren(...found.exchanges.map((one, at) => exchange(one, at + 1, found)));
      const writes = found.act === "ask" || found.act === "answer";
      const waits = found.role === "judge" ? "wait_answers" : found.left ? "wait_question" : "wait_judge";
      told.textContent = found.act || found.state !== "open" ? "" : phrase(waits);
      const wanted = `${found.act} ${found.turn}`;
      if (wanted !== formOf) {
        formOf = wanted;
        place.replaceChildren(writes ? writing(found) : found.act === "judge" ? judging(found) : "");
        place.querySelector("textarea, input")?.focus({ preventScroll: true });
        (place.firstElementChild ?? list.lastElementChild)?.scrollIntoView({ block: "nearest" });
      }
    }

    const go = (answer) => (pressed) => {
      off(pressed);
      send(view, answer);
    };

    function ended(found) {
      if (found.state === "nobody") {
        put(phrase("lobby_title"), el("p", null, phrase("nobody")), actions(button("next", go({ nobody: true }))));
        return;
      }
      draw(found);
      const over = found.state === "over";
      const back = (pressed) => {
        off(pressed);
        post("act", { test: found.test, act: "back" }).then(() => again(view), failed);
      };
      place.replaceChildren(
        el("p", { class: "truth", role: "status" }, phrase(over ? "test_over" : "test_void")),
        over ? actions(button("next", go({}))) : actions(button("test_back", back), button("stop_here", go({}), true)),
      );
      place.scrollIntoView({ block: "nearest" });
    }

    let version = "";
    for (;;) {
      const found = await post("test", { version });
      if (found.version === version) continue;
      version = found.version;
      if (found.state === "waiting") {
        const stop = view.number > 1 ? actions(button("stop_here", go({ nobody: true }), true)) : "";
        if (page !== "lobby") put(phrase("lobby_title"), el("p", null, phrase("test_lobby")), stop);
        page = "lobby";
      } else if (found.state !== "open") return ended(found);
      else if (found.act === "ready") read(found);
      else draw(found);
    }
  }

  Object.assign(Turinglike, { test });
}
