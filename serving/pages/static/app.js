// The page: which agent, what it is asked, and what came of it.
"use strict";

{
  const { badge, byId, code, el, folded, json, note, pairs } = Turinglike;
  const { base64, call, hasKey, ImageField, Refusal, setKey, Talk } = Turinglike;
  const { card, picture, summary, TASKS } = Turinglike;

  const PICTURED = ["color_estimation", "object_detection", "attention_prediction", "image_captioning"];
  const AGAIN = 2000; // milliseconds until agents that are being loaded are looked at again

  const state = { agents: [], asking: null, shown: null, talk: null, again: 0 };
  const fields = {
    image: new ImageField(byId("image-field"), "image", "Picture", hint),
    target: new ImageField(byId("target-field"), "target", "Picture of the target", () => {}),
  };

  // agents

  async function load() {
    try {
      const { value } = await call("agents");
      const changed = JSON.stringify(value.agents) !== JSON.stringify(state.agents);
      state.agents = value.agents;
      if (changed) listAgents(); // otherwise a list that somebody has just opened would close
    } catch (error) {
      if (error.status === 401) wantKey();
      else refused(error, "The agents are not known");
      return false;
    }
    byId("key-panel").hidden = true;
    byId("forget").hidden = !hasKey();
    clearTimeout(state.again);
    if (state.agents.some((agent) => agent.state === "loading")) state.again = setTimeout(load, AGAIN);
    return true;
  }

  function listAgents() {
    const select = byId("agent");
    const before = select.value;
    const groups = new Map();
    for (const agent of state.agents) {
      const group = agent.tasks.length > 1 ? "Several tasks" : TASKS[agent.tasks[0]];
      const how = agent.state === "ready" ? "" : ` (${agent.state})`;
      const option = el("option", { value: agent.name }, `${agent.name}${how}`);
      groups.set(group, [...(groups.get(group) ?? []), option]);
    }
    select.replaceChildren(...[...groups].map(([label, options]) => el("optgroup", { label }, options)));
    if (state.agents.some((agent) => agent.name === before)) select.value = before;
    chooseAgent(select.value === before);
  }

  const chosen = () => state.agents.find((agent) => agent.name === byId("agent").value);
  const task = () => byId("task").value;
  const searches = () =>
    task() === "attention_prediction" && document.querySelector("input[name=mode]:checked").value === "search";

  function chooseAgent(same = false) {
    const agent = chosen();
    if (agent === undefined) return;
    describe(agent);
    if (same && task() !== "") return;
    const before = task();
    byId("task").replaceChildren(...agent.tasks.map((name) => el("option", { value: name }, TASKS[name])));
    if (agent.tasks.includes(before)) byId("task").value = before;
    byId("task-field").hidden = agent.tasks.length < 2;
    chooseTask();
  }

  function describe(agent) {
    const about = byId("agent-about");
    const open = about.querySelector("details")?.open ?? false;
    const kind = agent.state === "ready" ? "good" : agent.state === "failed" ? "alert" : "";
    const badges = [
      badge(agent.state, kind),
      agent.state === "not loaded" && [" ", badge("loads when it is first asked")],
      agent.kind === "control" && [" ", badge("control: odd by design", "warn")],
    ];
    const rows = [["checkpoint", agent.checkpoint ? code(agent.checkpoint) : "none"]];
    if (agent.revision) rows.push(["revision", code(agent.revision)]);
    rows.push(["digest", code(agent.digest)]);
    const more = folded("About this agent", pairs(rows), json(agent.settings, "Settings"));
    more.open = open;
    const tasks = el("p", badges, " ", agent.tasks.map((name) => TASKS[name]).join(", "));
    about.replaceChildren(tasks, el("p.bad", agent.error), more);
  }

  function chooseTask() {
    const [agent, name] = [chosen(), task()];
    const looks = name === "attention_prediction";
    byId("image-field").hidden = !PICTURED.includes(name);
    byId("mode-field").hidden = !looks || agent.modes.length < 2;
    if (looks && agent.modes.length === 1)
      document.querySelector(`input[name=mode][value=${agent.modes[0]}]`).checked = true;
    byId("target-field").hidden = !searches();
    byId("cue-field").hidden = name !== "word_association";
    byId("talk-fields").hidden = name !== "conversation";
    byId("sample-field").hidden = name === "conversation";
    byId("submit").textContent = name === "conversation" ? "Start a conversation" : "Ask";
    hint();
  }

  /** The stimulus's id where none is given: of what is asked, in plain signs. */
  function ownId() {
    const from = task() === "word_association" ? byId("cue").value : (fields.image.file?.name ?? "");
    const plain = from
      .normalize("NFC")
      .replace(/[^\p{L}\p{N} ._-]/gu, "_")
      .trim()
      .slice(0, 100);
    return `page/${/^\.*$/.test(plain) ? "stimulus" : plain}`;
  }

  function hint() {
    const talks = task() === "conversation";
    byId("stimulus-id").placeholder = talks ? "a random one" : ownId();
  }

  // asking

  async function ask(event) {
    event.preventDefault();
    const agent = chosen();
    if (agent === undefined || state.asking !== null) return;
    right();
    byId("errors").replaceChildren();
    let asked;
    try {
      asked = task() === "conversation" ? talkAsked(agent) : stimulusAsked(agent);
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      wrong(error);
      return;
    }
    state.asking = new AbortController();
    busy(true);
    tell(`${agent.name} is asked …`);
    try {
      if (task() === "conversation") await converse(agent, asked, state.asking.signal);
      else await answer(agent, asked, state.asking.signal);
      if (agent.state !== "ready") load(); // by now it is
    } catch (error) {
      if (error.name === "AbortError") tell("You did not wait for the answer.");
      else {
        if (state.talk === null) show(null, []); // what is there answers something else
        refused(error, `${agent.name} gave no answer`);
      }
    } finally {
      state.asking = null;
      busy(false);
    }
  }

  async function answer(agent, asked, signal) {
    const files = { image: fields.image.file, target_image: searches() ? fields.target.file : null };
    const pictured = !byId("image-field").hidden;
    const images = {};
    for (const [name, file] of Object.entries(files)) if (pictured && file !== null) images[name] = await base64(file);
    const seen = pictured ? await picture(files.image) : null;
    const { text, value } = await call("answers", { ...asked, images }, signal);
    show(seen, card(value, text, asked.stimulus, seen));
    tell(summary(value));
  }

  async function converse(agent, asked, signal) {
    const { value } = await call("conversations", asked, signal);
    const talk = new Talk(value, { tell, refused });
    show(null, talk.parts);
    state.talk = talk;
    tell(`The conversation with ${agent.name} has begun.`);
    talk.focus();
  }

  /** Something that the page can see to be wrong with a field. */
  class Wrong extends Error {
    constructor(field, message) {
      super(message);
      this.field = field;
    }
  }

  function wrong({ field, message }) {
    const details = field.closest("details");
    if (details !== null) details.open = true;
    field.closest(".field").append(el("p.bad", { id: "wrong", role: "alert" }, message));
    field.setAttribute("aria-invalid", "true");
    field.addEventListener("input", right, { once: true });
    field.focus();
  }

  /** What was wrong with a field is so no longer, or is looked at anew. */
  function right() {
    byId("wrong")?.remove();
    for (const field of document.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  }

  function whole(id, name) {
    const text = byId(id).value.trim();
    if (text === "") return null;
    const number = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number))
      throw new Wrong(byId(id), `${name} is a whole number, 0 or above.`);
    return number;
  }

  function talkAsked(agent) {
    const fields = {
      id: byId("stimulus-id").value || null,
      topic: byId("topic").value.trim() || null,
      who_starts: byId("starts").value || null,
      mode: byId("talk-mode").value,
      exchanges: whole("exchanges", "The number of messages"),
      seed: whole("seed", "The seed"),
    };
    const asked = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
    return { agent: agent.name, person: byId("person").value, ...asked, ...extra() };
  }

  function stimulusAsked(agent) {
    const stimulus = { id: byId("stimulus-id").value || ownId(), task: task(), ...extra() };
    if (PICTURED.includes(task()) && fields.image.file === null)
      throw new Wrong(fields.image.input, "Choose a picture first.");
    if (searches()) {
      stimulus.mode = "search";
      const needed = "A search needs a picture of its target, or target_box among the other fields.";
      if (fields.target.file === null && stimulus.target_box === undefined)
        throw new Wrong(fields.target.input, needed);
    }
    if (task() === "word_association") {
      stimulus.cue = byId("cue").value.trim();
      if (stimulus.cue === "") throw new Wrong(byId("cue"), "Type a cue word first.");
    }
    const asked = { agent: agent.name, stimulus, sample: whole("sample", "The sample") ?? 0 };
    const seed = whole("seed", "The seed");
    if (seed !== null) asked.seed = seed;
    return asked;
  }

  function extra() {
    const text = byId("extra").value.trim() || "{}";
    let fields = null;
    try {
      fields = JSON.parse(text);
    } catch {
      // said below
    }
    if (fields?.constructor === Object) return fields;
    throw new Wrong(byId("extra"), 'The other fields are one JSON object, such as {"max_fixations": 10}.');
  }

  // showing

  function show(seen, parts) {
    const before = state.shown;
    byId("shown").replaceChildren(...parts);
    state.shown = seen;
    state.talk?.leave();
    state.talk = null;
    if (before?.url) URL.revokeObjectURL(before.url);
    reveal();
  }

  /** On a phone the answer is below the form. */
  function reveal() {
    const section = byId("answer");
    if (section.getBoundingClientRect().top > innerHeight / 2) section.scrollIntoView();
  }

  function tell(text) {
    byId("status").textContent = text;
    byId("errors").replaceChildren();
  }

  function busy(is) {
    byId("submit").setAttribute("aria-disabled", String(is));
    byId("stop").hidden = !is;
    byId("answer").setAttribute("aria-busy", String(is));
  }

  /** Say what went wrong, in words and with the id by which the server's log knows the request. */
  function refused(error, what) {
    if (!(error instanceof Refusal)) {
      tell("");
      byId("errors").append(el("p.box-notice.bad", "This page has a fault: it cannot show what the server replied."));
      throw error;
    }
    if (error.status === 401) {
      wantKey();
      tell("");
      return;
    }
    const { message, problems, requestId, retryAfter } = error;
    const problem = ({ field, message: why }) => el("li", code(field), ": ", why);
    byId("status").textContent = "";
    byId("errors").replaceChildren(
      el(
        "div.box-notice.bad",
        el("p", el("strong", `${what}: `), message, "."),
        problems.length > 1 && el("ul", problems.map(problem)),
        retryAfter !== null && el("p", `Try again in ${retryAfter} s.`),
        note("Code ", code(error.code), requestId !== null && [", request ", code(requestId)]),
      ),
    );
    reveal();
  }

  // the key

  function wantKey(message = "") {
    setKey(null);
    byId("forget").hidden = true;
    byId("key-panel").hidden = false;
    byId("key-error").textContent = message;
    byId("key").value = "";
    byId("key").focus();
  }

  async function useKey(event) {
    event.preventDefault();
    const text = byId("key").value.trim();
    if (!/^[!-~]+$/.test(text)) {
      wantKey("A key has letters, digits and signs of ASCII, and no spaces.");
      return;
    }
    setKey(text);
    try {
      await call("agents");
    } catch (error) {
      if (error.status === 401) wantKey(`The server does not accept this key (request ${error.requestId}).`);
      else byId("key-error").textContent = `The key could not be tried: ${error.message}.`;
      return;
    }
    if (await load()) {
      tell("The server accepts the key.");
      byId("agent").focus();
    }
  }

  byId("agent").addEventListener("change", () => chooseAgent());
  byId("task").addEventListener("change", chooseTask);
  byId("mode-field").addEventListener("change", chooseTask);
  byId("cue").addEventListener("input", hint);
  byId("ask-form").addEventListener("submit", ask);
  byId("stop").addEventListener("click", () => {
    byId("submit").focus();
    state.asking?.abort();
  });
  byId("key-form").addEventListener("submit", useKey);
  byId("forget").addEventListener("click", () => wantKey("The key is forgotten."));
  load();
}
