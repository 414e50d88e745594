// An online test: a judge, or an agent who does not see what the other agent answers; and the lobby before it.
"use strict";

{
  const { bubble, countWords, el, lineOf, record, sentBy, unsentBubble, writer } = Turinglike;

  /** Shows a participant's test, from the lobby to its end; `tools` are what the pages share. */
  async function test(view, tools) {
    const { actions, again, button, drafts, failed, go, off, paragraphs, phrase, post, put, reasons, slider } = tools;
    const top = el("p.small", { role: "status" });
    const list = el("div.exchanges", { "aria-live": "polite" });
    const status = el("p.note", { role: "status" });
    const place = el("div");
    let page = ""; // what is up: the lobby, the part to be read, or the test
    const rooms = []; // by the clock: each conversation, with a place to write
    let stops = 0; // when the clock stops, in ms
    let formOf = ""; // the act and turn that the form is for

    /** Sends an act; returns whether it is kept, or can be no more. */
    async function act(test, more, allow, whenLost) {
      allow(false);
      try {
        const which = { list: view.list, test: test.test, act: test.act, turn: test.turn };
        const { why } = await post("act", { ...which, ...more }, whenLost);
        if (!why || why === "test_void") return true;
        status.textContent = phrase(why, view);
        allow(true);
      } catch (error) {
        await failed(error);
      }
      return false;
    }

    const heading = ({ role }) => phrase(`test_${role}`);

    /** What each has said: of the judge's two agents beside each other. */
    function exchange({ question, answers }, number, test) {
      const judges = test.role === "judge";
      const parts = [bubble("div", judges, [phrase(judges ? "you" : "the_judge")], question)];
      if (judges && answers.length) {
        const both = answers.map((text, at) => bubble("div", false, [phrase("agent_name", { number: at + 1 })], text));
        parts.push(el("div.both", both));
      } else if (answers.length) parts.push(bubble("div", true, [phrase("you")], answers[0]));
      const verdict = test.verdicts.find(({ after }) => after === number);
      if (verdict) parts.push(el("p.note", phrase("said_human", verdict)));
      return el("section.chat", parts);
    }

    function writing(test) {
      const asks = test.act === "ask";
      const most = view.words_below - 1;
      const words = () => countWords(made.area.value);
      const tooMany = () => !asks && words() > most;
      const count = el("p.note", { role: "status" });
      const look = () => {
        count.textContent = tooMany() ? phrase("too_many_words", view) : phrase("words_of", { words: words(), most });
        count.classList.toggle("bad", tooMany());
      };
      const send = async (text) => {
        if (tooMany()) return;
        const isKept = await act(test, { text, traces: trace.take(text) }, (is) => made.off(!is));
        if (!isKept) {
          trace.giveBack();
          return;
        }
        trace.end();
        made.area.value = "";
        drafts.save();
      };
      // Each turn has a field of its own, lest the draft of one turn comes back in the next.
      const id = `message-${test.turn}`;
      const made = writer(phrase(asks ? "question" : "own_answer"), phrase("send"), send, { id });
      const trace = record(view, made.form, id);
      if (!asks) {
        made.area.after(count);
        made.area.addEventListener("input", look);
        look();
      }
      return made.form;
    }

    function room(test, side) {
      const name = phrase(test.role === "judge" ? "agent_name" : "the_judge", { number: side });
      const list = el("div.chat", { tabindex: 0, role: "log", "aria-label": name });
      let seen = 0; // messages that are in the list
      let unsent = null; // the participant's message, while it waits for the connection

      function showUnsent(text) {
        unsent?.remove();
        unsent = text === null ? null : unsentBubble("div", [phrase("you")], phrase("not_sent"), text);
        if (unsent === null) return;
        list.append(unsent);
        list.scrollTop = list.scrollHeight;
      }
      const send = async (text) => {
        const allow = (is) => {
          made.off(!is);
          if (!is) made.area.value = ""; // it stays a draft until the server has it
          else {
            showUnsent(null);
            made.restore(text);
          }
        };
        const more = { side, text, id: String(Math.random()), traces: trace.take(text) };
        if (await act(test, more, allow, () => showUnsent(text))) trace.done();
        else trace.giveBack();
        drafts.save();
      };
      const made = writer(phrase("message_to", { name }), phrase("send"), send, { id: `message-${side}`, rows: 1 });
      const trace = record(view, made.form, `message-${side}`);

      function show(messages) {
        const news = messages.slice(seen);
        seen = messages.length;
        if (news.some(({ mine }) => mine)) showUnsent(null);
        list.append(...news.map(({ mine, text }) => bubble("div", mine, mine ? phrase("you") : name, text)));
        if (unsent !== null && news.length) list.append(unsent);
        if (news.length) list.scrollTop = list.scrollHeight;
        made.off(unsent !== null);
      }
      return { made, node: el("section", el("h2", name), list, made.form), show };
    }

    function tick() {
      const left = Math.max(0, Math.ceil((stops - Date.now()) / 1000));
      const time = new Date(1000 * left).toISOString().slice(left < 3600 ? 14 : 11, 19);
      top.textContent = phrase("time_left", { time });
    }

    function converse(test) {
      if (!rooms.length) {
        rooms.push(...test.chats.map((_, at) => room(test, at + 1)));
        list.replaceChildren(el("div.live", rooms.map(({ node }) => node)));
        top.setAttribute("role", "timer"); // which is not read out
        setInterval(tick, 250);
        drafts.restore();
      }
      stops = Date.now() + 1000 * test.seconds_left;
      tick();
      rooms.forEach(({ made, show }, at) => {
        show(test.chats[at]);
        made.form.hidden = test.act !== "say";
      });
    }

    function judging(test) {
      const press = el("button", { type: "submit" }, phrase("next"));
      const options = [1, 2].map((number) => {
        const input = el("input", { type: "radio", name: "human", value: number });
        return el("label", input, ` ${phrase("agent_name", { number })}`);
      });
      const which = el("fieldset", el("legend", phrase("which_human")), el("div.options", options));
      const code = (text) => el("label", el("input", { type: "checkbox", name: "codes", value: text }), ` ${text}`);
      const codes = view.codes?.length ? el("fieldset", el("legend", phrase("codes")), view.codes.map(code)) : "";
      const decide = (form) => {
        if (press.getAttribute("aria-disabled") === "true") return;
        const said = new FormData(form);
        const answer = { human: Number(said.get("human")), reason: said.get("reason"), codes: said.getAll("codes") };
        answer.confidence = Number(said.get("confidence")) / 100;
        if (answer.human && !form.querySelector(".untouched")) act(test, answer, (is) => off(press, !is));
        else status.textContent = phrase("incomplete");
      };
      return sentBy(decide, which, view.codes ? slider() : "", codes, reasons(), actions(press));
    }

    function draw(test) {
      if (page !== "test") {
        const part = el("details", el("summary", phrase("test_part")), paragraphs(test.text));
        put(heading(test), part, lineOf(view), top, list, status, place);
        page = "test";
      }
      if (test.chats) converse(test);
      else {
        top.textContent = phrase("test_left", test);
        list.replaceChildren(...test.exchanges.map((each, at) => exchange(each, at + 1, test)));
      }
      const waits = test.role === "judge" ? "wait_answers" : test.left ? "wait_question" : "wait_judge";
      top.hidden = test.state !== "open" || test.seconds_left === 0;
      status.textContent = test.act || test.state !== "open" ? "" : phrase(waits);
      const wanted = `${test.act} ${test.turn}`;
      if (wanted === formOf) return;
      formOf = wanted;
      const forms = { ask: writing, answer: writing, judge: judging };
      place.replaceChildren(forms[test.act]?.(test) ?? "");
      drafts.restore();
      place.querySelector("textarea, input")?.focus({ preventScroll: true });
      (place.firstElementChild ?? list.lastElementChild)?.scrollIntoView({ block: "nearest" });
    }

    function ended(test) {
      if (test.state === "nobody") {
        put(phrase("lobby_title"), el("p", phrase("nobody")), actions(button("next", go(view, { nobody: true }))));
        return;
      }
      draw(test);
      const back = (pressed) => {
        off(pressed);
        post("act", { list: view.list, test: test.test, act: "back" }).then(() => again(view), failed);
      };
      const isOver = test.state === "over";
      const next = [button("next", go(view, {}))];
      const buttons = isOver ? next : [button("test_back", back), button("stop_here", go(view, {}), true)];
      const why = { fault: "test_failed", away: "test_away" }[test.void] ?? "test_void";
      const words = el("p.truth", { role: "status" }, phrase(isOver ? "test_over" : why));
      place.replaceChildren(words, actions(...buttons));
      place.scrollIntoView({ block: "nearest" });
    }

    let version = "";
    for (;;) {
      const test = await post("test", { list: view.list, version });
      if (test.version === version) continue;
      version = test.version;
      if (test.state === "waiting") {
        const stop = view.number > 1 ? actions(button("stop_here", go(view, { nobody: true }), true)) : "";
        if (page !== "lobby") put(phrase("lobby_title"), el("p", phrase("test_lobby")), stop);
        page = "lobby";
      } else if (test.state !== "open") return ended(test);
      else if (test.act === "ready") {
        const begin = button("test_begin", (pressed) => act(test, {}, (is) => off(pressed, !is)));
        put(heading(test), ...paragraphs(test.text), status, actions(begin));
      } else if (test.has_begun === false)
        put(heading(test), ...paragraphs(test.text), el("p.note", { role: "status" }, phrase("wait_ready")));
      else draw(test);
    }
  }

  Object.assign(Turinglike, { test });
}
