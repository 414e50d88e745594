// The steps of a study, one after the other. What is answered is gone from here only when the server has it on disk.
"use strict";

{
  const { ahead, byId, drafts, duration, el, field, found, isBlank, kit, lost } = Turinglike;
  const { pause, quote, sentBy, shown, wait } = Turinglike;

  const page = byId("page");
  const query = new URLSearchParams(location.search);
  const link = query.get("link");
  let words = {};
  let title = "";
  let plurals = null; // which form of a phrase a number has in the pages' language
  let current = null; // the step that is up
  let onKey = null; // what a key does on this page; null while none is awaited

  const phrase = (name, values = {}) =>
    (words[name] ?? name).replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
  /** A phrase about a `number`, in the form that the language has for it: "1 message to go", "2 messages to go". */
  function counted(name, number, values = {}) {
    const form = `${name}_${plurals.select(number)}`;
    return phrase(words[form] === undefined ? name : form, { number, ...values });
  }
  const post = (address, body, whenLost) => Turinglike.post(address, body, phrase("offline"), whenLost);
  /** Whom this page is for: what its address says, and the judge whose pages this tab has had. */
  const who = () => ({
    link,
    worker: query.get(words.worker),
    parameters: Object.fromEntries(words.parameters.map((name) => [name, query.get(name)])),
    list: current?.list ?? remembered(),
  });
  const isPersonal = () => Boolean(link || query.get(words.worker));
  // A tab keeps its judge when it is loaded again, as somebody else may have begun in another one.
  const place = () => `judge ${words.study}`;
  const remembered = () => (navigator.cookieEnabled ? sessionStorage.getItem(place()) : null);
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

  /** Put a page up, with its heading, and let those who hear it begin there. */
  function put(heading, ...parts) {
    onKey = null;
    for (const image of page.querySelectorAll("img")) image.dispatchEvent(new Event("turinglike-gone"));
    page.replaceChildren(el("h1", quote(heading)), ...parts);
    document.title = heading === title ? title : `${heading} – ${title}`; // a list of tabs says which step is up
    drafts.restore();
    scrollTo(0, 0);
    page.focus({ preventScroll: true });
  }

  const paragraphs = (text) =>
    text
      .split(/\n\s*\n/)
      .filter((part) => part.trim())
      .map((part) => el("p", { dir: "auto" }, quote(part.trim())));

  function button(name, press, quiet = false) {
    const made = el("button", { type: "button", class: quiet ? "quiet" : "" }, phrase(name));
    made.addEventListener("click", () => {
      if (made.getAttribute("aria-disabled") !== "true") press(made);
    });
    return made;
  }

  const actions = (...buttons) => el("div.actions", buttons);
  const off = (node, is = true) => node.setAttribute("aria-disabled", String(is));
  const reasons = () =>
    field("reason", phrase("reason"), el("textarea", { id: "reason", name: "reason", rows: 2, maxlength: 2000 }));
  /** How sure one is; without a value before it is touched. */
  function slider() {
    const touch = () => {
      range.classList.remove("untouched");
      range.removeAttribute("aria-valuetext");
    };
    const about = { type: "range", id: "confidence", name: "confidence", min: 0, max: 100, "aria-valuetext": "–" };
    const range = el("input.untouched", { ...about, input: touch, pointerup: touch });
    return field("confidence", phrase("confidence"), el("div.line.small", phrase("unsure"), range, phrase("sure")));
  }
  const alarm = () => el("p.bad", { role: "alert" });
  /** Tell what is wrong, so that it is seen and read out also where the same was told before. */
  async function tell(problem, text) {
    problem.textContent = "";
    await wait(100);
    problem.textContent = text;
  }
  /** What a button does that answers a step. */
  const go = (view, answer) => (pressed) => {
    off(pressed);
    send(view, answer);
  };

  /** Send the answer to a step; `after` shows what was right, if that is known, and then what comes next. */
  async function send(view, answer, after = (reply) => show(reply.next)) {
    onKey = null;
    try {
      await after(await post("answer", { step: view.step, list: view.list, answer }));
    } catch (error) {
      await failed(error);
    }
  }

  async function failed(error) {
    const isElsewhere = ["not_yet", "unauthorized", "other_judge"].includes(error.code);
    if (isElsewhere) return show(await post("now", who()));
    const text = words[error.code] ? el("p", phrase(error.code)) : el("p.bad", phrase("fault"));
    put(title, text, kit?.buttons(phrase) ?? "");
  }

  // pages

  const PAGES = { welcome, consent, questions, after: questions, instructions, break: rest, trial, ask, check, talk, test, end };

  /** Show a step; by default that there is none: declined, blocked or closed. */
  function show(view) {
    // This browser is somebody else's now, and nobody has come to this tab by an address of their own.
    const isLost = !kit && view.kind === "welcome" && Boolean(current?.list ?? (!isPersonal() && remembered()));
    foot((current = view));
    const step = `${words.study} ${view.list} ${view.kind} ${view.step}`;
    drafts.begin(step);
    Turinglike.beginTraces(step);
    if (view.list && navigator.cookieEnabled) sessionStorage.setItem(place(), view.list);
    forget(view);
    return isLost ? welcome(view, phrase("begin_again")) : (PAGES[view.kind] ?? over)(view);
  }

  /** Below every page: the judge's code, and the way out. */
  function foot(view) {
    const { kind, list } = view;
    const isStep = kind in PAGES && kind !== "welcome" && kind !== "end"; // other pages have a kit's buttons themselves
    let parts = [];
    if (list && kind !== "left")
      parts = isStep ? [phrase("your_code", { code: list }), leaving(list, "leave_delete_sure")] : footOfEnd(view);
    if (kit && isStep) parts.push(kit.buttons(phrase));
    byId("foot").replaceChildren(...parts);
  }

  /** On a last page: apart from the code for payment, and with the way out folded away, lest it is taken by mistake. */
  function footOfEnd({ list, code }) {
    const name = code && code !== list ? "deletion_code" : "your_code"; // in a kit both codes are the same
    const leave = leaving(list, code ? "delete_finished_sure" : "leave_delete_sure");
    return [el("p", phrase(name, { code: list })), el("details", el("summary", phrase("delete_answers")), leave)];
  }

  const leaving = (list, sure) =>
    button("leave_delete", () => confirm(phrase(sure)) && post("leave", { list }).then(show, failed), true);

  function over(view) {
    put(title, el("p", phrase(view.kind)), ...codes(view), ...told(view), kit?.buttons(phrase) ?? "");
  }

  function welcome(view, note = "") {
    if (!kit && !navigator.cookieEnabled) return put(title, el("p.bad", phrase("no_cookies")));
    if (Math.min(screen.width, screen.height) < words.screen) return put(title, el("p.bad", phrase("small_screen")));
    if (kit?.isFull()) return put(title, el("p", phrase("kit_full")), kit.buttons(phrase));
    const begin = button("begin", (pressed) => {
      off(pressed);
      post("join", who()).then(show).catch(failed);
    });
    const told = note ? [el("p.truth", { role: "status" }, note)] : firstPage();
    const way = view.refused ? el("p.truth", { role: "status" }, phrase(view.refused)) : actions(begin);
    put(title, ...told, way, kit?.buttons(phrase) ?? "");
  }

  /** Who asks, how long it takes, how much there is to do, and what will happen. */
  function firstPage() {
    const { institution, minutes, what, number, text, happens } = words.first_page;
    const facts = [counted("first_minutes", minutes), counted(what, number)];
    const values = (step) => ({ ...step, what: counted(what, number) });
    const item = (step) => el("li", step.number ? counted(step.phrase, step.number) : phrase(step.phrase, values(step)));
    return [
      institution && el("p.institution", phrase("first_by", { institution })),
      el("ul.facts", facts.map((fact) => el("li", fact))),
      el("h2", phrase("first_happens")),
      ...(text ? paragraphs(text) : [el("ol.happens", happens.map(item))]),
      el("p.note", phrase("first_leave")),
    ];
  }

  function consent(view) {
    const back = button("back", () => consent(view));
    const sure = actions(back, button("leave", go(view, { agree: false }), true));
    const leave = () => put(title, el("p", phrase("leave_sure")), sure); // a slip of the hand must not do it
    const agree = button("agree", go(view, { agree: true, consent: view.consent }));
    put(title, ...paragraphs(view.text), actions(agree, button("decline", leave, true)));
  }

  function questions(view) {
    const required = view.fields.filter((name) => view.required.includes(name));
    const answer = (node) => {
      const filled = Object.fromEntries([...new FormData(node)].filter(([, value]) => !isBlank(value)));
      const lacking = required.find((name) => !(name in filled));
      if (!lacking) return send(view, filled);
      tell(problem, phrase("incomplete"));
      byId(`q-${lacking}`).focus();
    };
    const problem = alarm();
    const next = el("button", { type: "submit" }, phrase("next"));
    const fields = view.fields.map((name) => question(name, required.includes(name)));
    const form = sentBy(answer, fields, problem, actions(next));
    const heading = phrase(view.kind === "after" ? "after_title" : "questions_title");
    put(heading, el("p.note", phrase(required.length ? "required_note" : "questions_note")), form);
  }

  function question(name, required) {
    const options = words.options[name];
    const id = `q-${name}`;
    const nothing = required ? "…" : phrase("prefer_not");
    const option = (value) => el("option", { value }, value ? optionText(value) : nothing);
    let input = el("input", { id, name, type: "text", maxlength: 60 });
    if (options) input = el("select", { id, name }, ["", ...options].map(option));
    else if (name === "comments") input = el("textarea", { id, name, rows: 4, maxlength: 4000 });
    return field(id, `${phrase(name)}${required ? " *" : ""}`, input);
  }

  const asked = (trial) =>
    trial.speakers.map((speaker) => phrase(trial.beside ? "asked_pair" : `asked_${trial.asked}`, { speaker }));
  /** A verdict in words: of two conversations, in which of them the machine speaks. */
  const verdictText = (trial, verdict) =>
    phrase(trial.beside ? { machine: "first", human: "second" }[verdict] : verdict);
  const truthText = (trial, truth) =>
    truth
      .map((value, at) => (truth.length > 1 ? `${"AB"[at]}: ${phrase(value)}` : verdictText(trial, value)))
      .join(", ");
  const optionText = (value) => words[`o_${value.replace(/\W/g, "_")}`] ?? value;

  /** The phrase that says how many of what there are. */
  const NUMBER_OF = {
    ask: "instructions_answers",
    talk: "instructions_talks",
    test: "instructions_tests",
    trial: "instructions_number",
  };

  async function instructions(view) {
    put(phrase("instructions_title"), el("p", phrase("loading")));
    const samples = view.samples.length ? [el("h2", phrase("sample_title"))] : [];
    for (const sample of view.samples) {
      const texts = view.four ? [phrase("four")] : asked(sample);
      const truth = phrase(sample.beside ? "it_was" : "sample_was", { truth: truthText(sample, sample.truth) });
      const parts = [texts.map((text) => el("p.small", text)), await shown(sample, words), el("p.truth", truth)];
      samples.push(el("div.sample", parts));
    }
    if (current !== view) return;
    ahead(view.ahead);
    const [human, machine] = (view.keys ?? []).map((key) => key.toUpperCase());
    const keys = view.pairs
      ? phrase("keys_of_pairs", { first: machine, second: human })
      : phrase("instructions_keys", { human, machine });
    const facts = [
      phrase(view.of === "talk" && view.trials === 1 ? "instructions_talk" : NUMBER_OF[view.of], view),
      view.practice && phrase("instructions_practice", view),
      view.feedback && phrase("instructions_feedback", view),
      view.prior_told && !view.pairs && phrase("instructions_prior"),
      !view.four && keys,
    ].filter(Boolean);
    const texts = [...paragraphs(view.text), ...facts.map((fact) => el("p", fact))];
    const device = { touch: matchMedia("(pointer: coarse)").matches, screen: [screen.width, screen.height] };
    put(phrase("instructions_title"), ...texts, ...samples, actions(button("next", go(view, { device }))));
  }

  function rest(view) {
    const on = button("next", go(view, {}));
    put(phrase("break_title"), el("p", phrase("break_text", view)), actions(on));
    onKey = ({ key, repeat }) => key === "Enter" && !repeat && on.click();
  }

  /** Whether a trial was on this browser's screen before, so that nobody knows how long it took. */
  function wasShown(view) {
    const which = `${view.list} ${view.step}`;
    const before = localStorage.getItem("shown") === which;
    localStorage.setItem("shown", which);
    return before;
  }

  /** Put a trial or a stimulus up once all of it is decoded, above its form. Returns when it was on the screen, and
   * what tells `rt` from then and whether the page was hidden meanwhile; null where it cannot be had now. */
  async function stage(view, heading, load, form) {
    put(heading, el("p", phrase("loading")));
    let parts;
    try {
      parts = await load();
    } catch {
      lost(stage, phrase("offline"));
      await pause(2000);
      const now = await post("now", who());
      if (now.step !== view.step) found(stage);
      show(now);
      return null;
    }
    found(stage);
    if (current !== view) return null; // who loaded it has left meanwhile
    const before = wasShown(view);
    const progress = () => el("progress", { max: view.of, value: view.number - 1, "aria-label": heading });
    const top = view.of ? el("div.top", progress()) : "";
    put(heading, top, ...parts, form);
    await painted();
    const begin = performance.now();
    let away = document.hidden;
    const hide = () => (away ||= document.hidden);
    document.addEventListener("visibilitychange", hide);
    ahead(view.ahead);
    const times = (at) => ({ rt: before || at === null ? null : Math.round((at - begin) * 10) / 10, away });
    return { begin, times, end: () => document.removeEventListener("visibilitychange", hide) };
  }

  async function trial(view) {
    const heading = view.practice ? phrase("practice", view) : phrase("trial", view);
    let sent = false;
    const form = verdictForm(view, () => {
      if (sent || form.fields.disabled) return;
      const filled = form.answer();
      if (filled === null) {
        tell(problem, phrase("incomplete"));
        return;
      }
      sent = true;
      off(submit);
      up.end();
      const answer = { ...filled.answer, ...up.times(filled.at) };
      send(view, answer, ({ truth, next }) => feedback(view, answer, truth, next));
    });
    const problem = alarm();
    const submit = el("button", { type: "submit" }, phrase("next"));
    form.node.append(problem, actions(submit));
    let closed = 1000 * view.seconds_before; // for so many ms it may not be answered
    const load = async () => {
      const parts = await shown(view, words);
      if (view.play_once && view.clip) closed = Math.max(closed, await duration(view.clip));
      return parts;
    };
    const up = await stage(view, heading, load, form.node);
    if (up === null) return;
    onKey = form.key;
    if (closed > 0) form.locked.textContent = phrase(view.play_once ? "clip_wait" : "wait");

    await wait(Math.max(0, up.begin + closed - performance.now()));
    form.fields.disabled = false;
    form.locked.textContent = "";
  }

  function talk(view) {
    return Turinglike.talk(view, { actions, button, counted, drafts, go, phrase, post, put }).catch(failed);
  }

  function test(view) {
    const tools = { actions, again: test, button, drafts, failed, go, off, paragraphs, phrase, post, put, reasons, slider };
    return Turinglike.test(view, tools).catch(failed);
  }

  const writingTools = () => ({ actions, alarm, off, phrase, send, show, stage, tell, words });
  function ask(view) {
    return Turinglike.ask(view, writingTools());
  }
  function check(view) {
    return Turinglike.check(view, writingTools());
  }

  /** Radio buttons of the verdicts: a click or a key chooses; "Next" or Enter sends the form, with `submitted`. */
  function verdictForm(view, submitted) {
    const fields = el("fieldset.all", { disabled: true }); // until it can be timed
    const locked = el("p.note", { role: "status" });
    const node = sentBy(submitted, locked, fields);
    const groups = [];
    let chosenAt = null;
    let byKey = false;

    function noteChoice(isByKey) {
      chosenAt = performance.now();
      byKey = isByKey;
    }
    function group(name, legend, options) {
      const inputs = options.map(([value, text, key]) => {
        const input = el("input", { type: "radio", name, value });
        input.addEventListener("change", () => noteChoice(false));
        return el("label", input, ` ${text}`, key ? el("kbd", { "aria-hidden": "true" }, key.toUpperCase()) : null);
      });
      const made = el("fieldset", el("legend", legend), el("div.options", inputs));
      groups.push({ name, options, node: made });
      fields.append(made);
    }

    if (view.choices === "four" && view.speakers.length === 2) {
      const four = ["human human", "human machine", "machine human", "machine machine"];
      const options = four.map((pair, at) => [pair, phrase(pair.replace(" ", "_")), String(at + 1)]);
      group("four", phrase("four"), options);
    } else {
      const options = view.options.map(([value, key]) => [value, verdictText(view, value), key]);
      asked(view).forEach((text, at) => group(`v${at}`, text, options));
    }
    const judged = groups.length;
    if (view.control) {
      const { question: text, options, phrase: name, object } = view.control;
      const isOwn = text || name === "clip_shows"; // words of the set's, which no page translates
      const choices = options.map((value) => [value, isOwn ? value : optionText(value), null]);
      group("control", text || phrase(name, { object }), choices);
    }
    const sexes = view.sex ? view.speakers.map((speaker) => phrase(speaker ? "sex_of" : "sex", { speaker })) : [];
    sexes.forEach((text, at) => group(`s${at}`, text, ["female", "male"].map((sex) => [sex, optionText(sex), null])));
    if (view.confidence) fields.append(slider());
    if (view.reason) fields.append(reasons());
    const chosen = (name) => new FormData(node).get(name);

    function key(event) {
      if (fields.disabled || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter") {
        event.preventDefault();
        node.requestSubmit();
        return;
      }
      const open = groups.slice(0, judged).find(({ name }) => chosen(name) === null) ?? groups[judged - 1];
      const at = open.options.findIndex(([, , letter]) => letter === event.key.toLowerCase());
      if (at < 0) return;
      event.preventDefault();
      open.node.querySelectorAll("input")[at].checked = true;
      noteChoice(true);
    }

    /** The answer, and when it was chosen; null while it is incomplete. */
    function answer() {
      const values = groups.map(({ name }) => chosen(name));
      const slider = fields.querySelector(".untouched"); // it has no value before it is touched
      if (values.includes(null) || slider) {
        slider?.focus();
        return null;
      }
      const answer = { verdicts: values.slice(0, judged).flatMap((value) => value.split(" ")), key: byKey };
      if (view.control) answer.control = values[judged];
      if (view.sex) answer.sexes = values.slice(-sexes.length);
      if (view.confidence) answer.confidence = Number(chosen("confidence")) / 100;
      if (view.reason) answer.reason = chosen("reason") ?? "";
      return { answer, at: chosenAt };
    }

    return { node, fields, locked, key, answer };
  }

  function feedback(view, answer, truth, next) {
    if (truth === null) return show(next);
    const isRight = truth.every((value, at) => value === answer.verdicts[at]);
    const on = button("next", () => show(next));
    const text = `${phrase(isRight ? "right" : "wrong")} ${phrase("it_was", { truth: truthText(view, truth) })}`;
    const node = el(`div.truth.${isRight ? "good" : "bad"}`, { role: "status", tabindex: -1 }, text);
    for (const fields of page.querySelectorAll("fieldset.all")) fields.disabled = true;
    page.querySelector("form .actions")?.remove();
    page.append(node, actions(on));
    on.focus();
    node.scrollIntoView({ block: "nearest" });
  }

  /** A button that copies the code; where the browser does not let it, the code is selected for a copy by hand. */
  function copying(code) {
    const told = el("span.small", { role: "status" });
    const copy = async () => {
      told.textContent = "";
      try {
        await navigator.clipboard.writeText(code);
        told.textContent = phrase("copied");
      } catch {
        getSelection().selectAllChildren(byId("code"));
        told.textContent = phrase("copy_selected");
      }
    };
    return el("div.line", button("copy_code", copy, true), told);
  }

  function codes({ code, redirect }) {
    const parts = code ? [el("p", phrase("code")), el("p.code", { id: "code" }, code), copying(code)] : [];
    if (redirect) parts.push(el("p", el("a", { href: redirect, rel: "noreferrer" }, phrase("redirect"))));
    return parts;
  }

  const told = (view) => (view.debriefing ?? []).map((text) => el("p.note", { dir: "auto" }, text));

  /** What the browser keeps of a participant goes with their last page. The tab alone keeps their code, lest it shows
   * somebody else's page when it is loaded again. */
  function forget({ kind, list }) {
    if (!navigator.cookieEnabled || !list || (kind in PAGES && kind !== "end")) return;
    localStorage.removeItem("shown");
  }

  function end(view) {
    const note = view.note ? el("p.truth", phrase(view.note)) : "";
    put(phrase("end_title"), note, ...paragraphs(view.text), ...codes(view), ...told(view), kit?.buttons(phrase) ?? "");
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("textarea, input[type=text], select");
    if (onKey !== null && !typing && !(event.key === "Enter" && event.target.closest?.("button, a"))) onKey(event);
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // of a page that the back button brings, the step may be over
  });

  /** Of a language that browsers do not know, those of English. */
  function pluralsOf(language) {
    try {
      return new Intl.PluralRules(language);
    } catch {
      return new Intl.PluralRules("en");
    }
  }

  async function start() {
    let about = kit?.about;
    while (!about) about = await fetch("phrases").then((reply) => reply.json()).catch(() => wait(1000));
    words = { ...about, ...about.phrases };
    title = about.title;
    document.title = title;
    document.documentElement.lang = about.language;
    document.documentElement.dir = about.direction;
    plurals = pluralsOf(about.language);
    show(await post("now", { loaded: true, ...who() }));
  }
  start().catch(failed);
}
