// The steps of a study, one after the other. What is answered is gone from here only when the server has it on disk.
"use strict";

{
  const { ahead, askFields, byId, duration, el, kit, said, shown } = Turinglike;

  const RETRY = [500, 1000, 2000, 4000, 8000]; // ms between tries while the connection is lost
  const page = byId("page");
  const query = new URLSearchParams(location.search);
  const link = query.get("link");
  let words = {};
  let title = "";
  let onKey = null; // what a key does on this page; null while none is awaited

  const phrase = (name, values = {}) =>
    (words[name] ?? name).replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

  function notice(text) {
    const node = byId("notice");
    node.hidden = !text;
    node.textContent = text ?? "";
  }

  /** POST until it is answered: a lost connection, or a server that starts again, only takes time. */
  async function post(address, body) {
    if (kit) return kit.post(address, body);
    for (let tries = 0; ; tries++) {
      let reply;
      try {
        reply = await fetch(address, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
      } catch {
        notice(phrase("offline"));
        await wait(RETRY[Math.min(tries, RETRY.length - 1)]);
        continue;
      }
      const found = await reply.json().catch(() => null); // a proxy says in its own words that we are away
      if (found === null || (reply.status >= 502 && found.error.code !== "full")) {
        notice(phrase("offline"));
        await wait(RETRY[Math.min(tries, RETRY.length - 1)]);
        continue;
      }
      notice(null);
      if (!reply.ok) throw Object.assign(new Error(found.error.message), { code: found.error.code });
      return found;
    }
  }

  /** Put a page up, with its heading, and let those who hear it begin there. */
  function put(heading, ...parts) {
    onKey = null;
    for (const image of page.querySelectorAll("img")) image.dispatchEvent(new Event("turinglike-gone"));
    page.replaceChildren(el("h1", null, heading), ...parts);
    scrollTo(0, 0);
    page.focus({ preventScroll: true });
  }

  const paragraphs = (text) =>
    text
      .split(/\n\s*\n/)
      .filter((one) => one.trim())
      .map((one) => el("p", null, said(one.trim())));

  function button(name, press, quiet = false) {
    const made = el("button", { type: "button", class: quiet ? "quiet" : "" }, phrase(name));
    made.addEventListener("click", () => {
      if (made.getAttribute("aria-disabled") !== "true") press(made);
    });
    return made;
  }

  const actions = (...buttons) => el("div", { class: "actions" }, ...buttons);
  const off = (node, is = true) => node.setAttribute("aria-disabled", String(is));

  /** Send the answer to a step; `after` shows what was right, if that is told, and then what comes next. */
  async function send(view, answer, after = (reply) => show(reply.next)) {
    onKey = null;
    try {
      await after(await post("answer", { step: view.step, list: view.list, answer }));
    } catch (error) {
      await failed(error);
    }
  }

  async function failed(error) {
    if (error.code === "not_yet" || error.code === "unauthorized") show(await post("now", { link }));
    else if (words[error.code]) put(title, el("p", null, phrase(error.code)));
    else put(title, el("p", { class: "bad" }, phrase("fault")));
  }

  // pages

  const PAGES = { welcome, consent, questions, after: questions, instructions, trial, ask, talk, test, end, declined: over,
    blocked: over, closed: over }; // prettier-ignore

  function show(view) {
    return PAGES[view.kind](view);
  }

  function over(view) {
    put(title, el("p", null, phrase(view.kind)), kit?.buttons(phrase) ?? "");
  }

  function welcome() {
    if (!kit && !navigator.cookieEnabled) return put(title, el("p", { class: "bad" }, phrase("no_cookies")));
    const begin = button("begin", async () => {
      off(begin);
      try {
        show(await post("join", { link, worker: query.get(words.worker_parameter) }));
      } catch (error) {
        await failed(error);
      }
    });
    put(title, actions(begin), kit?.buttons(phrase) ?? "");
  }

  function consent(view) {
    const choose = (agree) => (pressed) => {
      off(pressed);
      send(view, { agree });
    };
    const leave = () => // for good: a slip of the hand must not do it
      put(
        title,
        el("p", null, phrase("leave_sure")),
        actions(button("back", () => consent(view)), button("leave", choose(false), true)),
      );
    put(title, ...paragraphs(view.text), actions(button("agree", choose(true)), button("decline", leave, true)));
  }

  function questions(view) {
    const form = el("form", { autocomplete: "off", novalidate: true });
    for (const name of view.fields) form.append(question(name));
    form.append(el("div", { class: "actions" }, el("button", { type: "submit" }, phrase("next"))));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(view, Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== "")));
    });
    const heading = phrase(view.kind === "after" ? "after_title" : "questions_title");
    put(heading, el("p", { class: "note" }, phrase("questions_note")), form);
  }

  function question(name) {
    const options = words.options[name];
    const id = `q-${name}`;
    const rows = [["", phrase("prefer_not")], ...(options ?? []).map((one) => [one, optionText(one)])];
    let input;
    if (options) input = el("select", { id, name }, ...rows.map(([value, text]) => el("option", { value }, text)));
    else if (name === "comments") input = el("textarea", { id, name, rows: 4, maxlength: 4000 });
    else input = el("input", { id, name, type: "text", maxlength: 60 });
    return el("div", { class: "field" }, el("label", { for: id }, phrase(name)), input);
  }

  const asked = (trial) =>
    trial.speakers.map((speaker) => phrase(trial.beside ? "asked_pair" : `asked_${trial.asked}`, { speaker }));
  /** A verdict in words: of two conversations, in which of them the machine speaks. */
  const verdictText = (trial, verdict) =>
    phrase(trial.beside ? { machine: "first", human: "second" }[verdict] : verdict);
  const optionText = (value) => words[`o_${value.replace(/\W/g, "_")}`] ?? value;

  async function instructions(view) {
    put(phrase("instructions_title"), el("p", null, phrase("loading")));
    const samples = [];
    for (const sample of view.samples) {
      const parts = await shown(sample, words);
      const truth = sample.truth.map((one, at) =>
        sample.truth.length > 1 ? `${"AB"[at]}: ${phrase(one)}` : verdictText(sample, one),
      );
      samples.push(
        el(
          "div",
          { class: "sample" },
          ...(view.four ? [phrase("four")] : asked(sample)).map((one) => el("p", { class: "small" }, one)),
          ...parts,
          el("p", { class: "truth" }, phrase(sample.beside ? "it_was" : "sample_was", { truth: truth.join(", ") })),
        ),
      );
    }
    ahead(view.ahead);
    const [human = "", machine = ""] = view.keys ?? [];
    const [h, m] = [human.toUpperCase(), machine.toUpperCase()];
    let keys = view.four ? "" : phrase("instructions_keys", { human: h, machine: m });
    if (view.pairs) keys = phrase("keys_of_pairs", { first: m, second: h });
    const facts = [
      phrase(view.tests ? "instructions_tests" : "instructions_number", view),
      view.practice ? phrase("instructions_practice", view) : "",
      view.feedback ? phrase("instructions_feedback", view) : "",
      view.prior_told && !view.pairs ? phrase("instructions_prior") : "",
      keys,
    ].filter((one) => one);
    put(
      phrase("instructions_title"),
      ...paragraphs(view.text),
      ...facts.map((one) => el("p", null, one)),
      ...(samples.length ? [el("h2", null, phrase("sample_title")), ...samples] : []),
      actions(
        button("next", (pressed) => {
          off(pressed);
          send(view, {});
        }),
      ),
    );
  }

  /** Whether a trial was on this browser's screen before, so that nobody knows how long it took. */
  function wasShown(view) {
    const which = `${view.list} ${view.step}`;
    const before = localStorage.getItem("shown") === which;
    localStorage.setItem("shown", which);
    return before;
  }

  async function trial(view) {
    const heading = view.practice ? phrase("practice") : phrase("trial", view);
    put(heading, el("p", null, phrase("loading")));
    let parts, closed; // for so many ms it may not be answered
    try {
      parts = await shown(view, words);
      closed = await opening(view);
    } catch {
      notice(phrase("offline"));
      await wait(2000);
      return show(await post("now", { link }));
    }
    notice(null);
    const before = wasShown(view);
    const form = verdictForm(view);
    const told = el("p", { class: "bad", role: "alert" });
    const submit = el("button", { type: "submit" }, phrase("next"));
    const top = el("div", { class: "top" }, el("progress", { max: view.of, value: view.number - 1, "aria-label": heading }));
    form.node.append(told, el("div", { class: "actions" }, submit));
    put(heading, top, ...parts, form.node);
    await painted();
    const begin = performance.now(); // all is decoded and on the screen
    let away = document.hidden;
    const hide = () => (away ||= document.hidden);
    document.addEventListener("visibilitychange", hide);
    onKey = (event) => form.key(event);
    if (closed > 0) form.lock(phrase(view.play_once ? "clip_wait" : "wait"));
    form.begin(begin);
    ahead(view.ahead);

    let sent = false;
    form.node.addEventListener("submit", (event) => {
      event.preventDefault();
      const answer = form.answer();
      if (sent || form.locked()) return;
      if (answer === null) {
        told.textContent = phrase("incomplete");
        return;
      }
      sent = true;
      off(submit);
      document.removeEventListener("visibilitychange", hide);
      send(view, { ...answer, rt: before ? null : answer.rt, away }, ({ truth, next }) => feedback(view, answer, truth, next));
    });
    await wait(Math.max(0, begin + closed - performance.now()));
    if (form.node.isConnected) form.unlock();
  }

  function talk(view) {
    return Turinglike.talk(view, { actions, button, off, phrase, post, put, send, show }).catch(failed);
  }

  function test(view) {
    return Turinglike.test(view, { actions, again: test, button, failed, off, paragraphs, phrase, post, put, send }).catch(failed);
  }

  /** What a participant answers: a colour, three objects, a caption or a word. */
  async function ask(view) {
    const heading = phrase("answer_number", view);
    put(heading, el("p", null, phrase("loading")));
    let parts;
    try {
      parts = await shown({ ...view, cue: undefined }, words);
    } catch {
      notice(phrase("offline"));
      await wait(2000);
      return show(await post("now", { link }));
    }
    notice(null);
    const before = wasShown(view);
    const told = el("p", { class: "bad", role: "alert" });
    const submit = el("button", { type: "submit" }, phrase("next"));
    const fields = el("fieldset", { class: "all", disabled: true }, ...askFields(view, phrase));
    const form = el("form", { autocomplete: "off", novalidate: true }, fields, told, actions(submit));
    const top = el("div", { class: "top" }, el("progress", { max: view.of, value: view.number - 1, "aria-label": heading }));
    put(heading, top, ...parts, form);
    await painted();
    const begin = performance.now();
    let away = document.hidden;
    const hide = () => (away ||= document.hidden);
    document.addEventListener("visibilitychange", hide);
    fields.disabled = false;
    fields.querySelector("input, select, textarea").focus({ preventScroll: true });
    ahead(view.ahead);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (submit.getAttribute("aria-disabled") === "true") return;
      const said = [...new FormData(form).values()].map((one) => one.trim());
      if (said.some((one) => !one)) {
        told.textContent = phrase("incomplete");
        return;
      }
      off(submit);
      const rt = before ? null : Math.round((performance.now() - begin) * 10) / 10;
      const answer = view.asked === "object_detection" ? said : said[0];
      send(view, { answer, rt, away }, (reply) => {
        if (reply.told.length && reply.next.step === view.step) {
          told.textContent = reply.told.map((one) => phrase(`told_${one}`)).join(" ");
          off(submit, false);
          return;
        }
        document.removeEventListener("visibilitychange", hide);
        show(reply.next);
      });
    });
  }

  /** The ms from when a trial is on the screen until it may be answered. */
  async function opening(view) {
    const played = view.play_once && view.clip ? await duration(view.clip) : 0;
    return Math.max(1000 * view.seconds_before, played);
  }

  function verdictForm(view) {
    const node = el("form", { autocomplete: "off", novalidate: true });
    let begin = null;
    let chosenAt = null;
    let byKey = false;
    const groups = [];
    const lockable = el("fieldset", { class: "all", disabled: true }); // until it can be timed
    const locked = el("p", { class: "note", role: "status" });

    function group(name, legend, options) {
      const inputs = options.map(([value, text, key]) => {
        const input = el("input", { type: "radio", name, value });
        input.addEventListener("change", () => choose(false));
        return el("label", null, input, ` ${text}`, key ? el("kbd", { "aria-hidden": "true" }, key.toUpperCase()) : null);
      });
      const made = el("fieldset", null, el("legend", null, legend), el("div", { class: "options" }, ...inputs));
      groups.push({ name, options, node: made });
      lockable.append(made);
    }
    function choose(key) {
      chosenAt = performance.now();
      byKey = key;
    }

    if (view.choices === "four" && view.speakers.length === 2) {
      const four = ["human human", "human machine", "machine human", "machine machine"];
      group("four", phrase("four"), four.map((one, at) => [one, phrase(one.replace(" ", "_")), String(at + 1)])); // prettier-ignore
    } else {
      asked(view).forEach((question, at) => {
        group(`v${at}`, question, view.options.map(([value, key]) => [value, verdictText(view, value), key])); // prettier-ignore
      });
    }
    const judged = groups.length;
    if (view.control) {
      const { question, options, phrase: name, object } = view.control;
      const isOwn = question || name === "clip_shows"; // words of the set's, which no page translates
      group("control", question || phrase(name, { object }), options.map((one) => [one, isOwn ? one : optionText(one), null])); // prettier-ignore
    }
    const extra = [];
    if (view.confidence) {
      const id = "confidence";
      const range = el("input", { type: "range", id, name: id, min: 0, max: 100, value: 50 });
      const ends = el("div", { class: "line small" }, phrase("unsure"), range, phrase("sure"));
      extra.push(el("div", { class: "field" }, el("label", { for: id }, phrase("confidence")), ends));
    }
    if (view.reason) {
      const area = el("textarea", { id: "reason", name: "reason", rows: 2, maxlength: 2000 });
      extra.push(el("div", { class: "field" }, el("label", { for: "reason" }, phrase("reason")), area));
    }
    lockable.append(...extra);
    node.append(locked, lockable);
    const chosen = (name) => new FormData(node).get(name);

    return {
      node,
      begin(at) {
        begin = at;
      },
      lock(text) {
        locked.textContent = text;
      },
      unlock() {
        lockable.disabled = false;
        locked.textContent = "";
      },
      locked: () => lockable.disabled,
      key(event) {
        if (lockable.disabled || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "Enter") {
          event.preventDefault();
          node.requestSubmit();
          return;
        }
        const open = groups.slice(0, judged).find((one) => chosen(one.name) === null) ?? groups[judged - 1];
        const hit = open.options.find(([, , key]) => key === event.key.toLowerCase());
        if (!hit) return;
        event.preventDefault();
        open.node.querySelectorAll("input")[open.options.indexOf(hit)].checked = true;
        choose(true);
      },
      answer() {
        const given = groups.map((one) => chosen(one.name));
        if (given.includes(null)) return null;
        const verdicts = given.slice(0, judged).flatMap((one) => one.split(" "));
        const answer = { verdicts, rt: chosenAt === null ? null : Math.round((chosenAt - begin) * 10) / 10, key: byKey };
        if (view.control) answer.control = given[judged];
        if (view.confidence) answer.confidence = Number(chosen("confidence")) / 100;
        if (view.reason) answer.reason = chosen("reason") ?? "";
        return answer;
      },
    };
  }

  function feedback(view, answer, truth, next) {
    if (truth === null) return show(next);
    const right = truth.every((one, at) => one === answer.verdicts[at]);
    const told = truth.map((one, at) => (truth.length > 1 ? `${"AB"[at]}: ${phrase(one)}` : verdictText(view, one))).join(", ");
    const on = button("next", () => {
      onKey = null;
      show(next);
    });
    const node = el(
      "div",
      { class: "truth", role: "status", tabindex: -1 },
      `${phrase(right ? "right" : "wrong")} ${phrase("it_was", { truth: told })}`,
    );
    for (const fields of page.querySelectorAll("fieldset.all")) fields.disabled = true;
    page.querySelector("form .actions")?.remove();
    page.append(node, actions(on));
    on.focus();
    node.scrollIntoView({ block: "nearest" });
  }

  function end(view) {
    const parts = [...paragraphs(view.text), el("p", null, phrase("code")), el("p", { class: "code" }, view.code)];
    if (view.redirect) parts.push(el("p", null, el("a", { href: view.redirect, rel: "noreferrer" }, phrase("redirect"))));
    put(phrase("end_title"), ...parts, kit?.buttons(phrase) ?? "");
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("textarea, input[type=text], select");
    if (onKey !== null && !typing && !(event.key === "Enter" && event.target.closest?.("button, a"))) onKey(event);
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // of a page that the back button brings, the step may be over
  });

  async function start() {
    const found = kit?.about ?? (await (await fetch("phrases")).json());
    words = { ...found.phrases, options: found.options, worker_parameter: found.worker };
    title = found.title;
    document.title = title;
    document.documentElement.lang = found.language;
    show(await post("now", { loaded: true, link }));
  }
  start().catch(failed);
}
