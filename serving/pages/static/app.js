// The page: which agents, what they are asked, and what came of it.
"use strict";

{
  const { base64, byId, call, Choice, Form, hasKey, picture } = Turinglike;
  const { Place, refusal, setKey, sideBySide, Talks, Wrong } = Turinglike;

  const AGAIN = 2000; // milliseconds until agents that are being loaded are looked at again

  const state = { asking: null, seen: null, talks: null, again: 0 };
  const choice = new Choice(() => form.showFields());
  const form = new Form(choice);

  async function load() {
    let agents;
    try {
      agents = (await call("agents")).value.agents;
    } catch (error) {
      if (error.status === 401) wantKey();
      else byId("errors").replaceChildren(refusal(error, "The agents are not known"));
      return false;
    }
    choice.list(agents);
    byId("key-panel").hidden = true;
    byId("forget").hidden = !hasKey();
    clearTimeout(state.again);
    if (agents.some((agent) => agent.state === "loading")) state.again = setTimeout(load, AGAIN);
    return true;
  }

  // asking

  async function ask(event) {
    event.preventDefault();
    if (choice.agent === undefined || state.asking !== null) return;
    form.right();
    byId("errors").replaceChildren();
    let questions;
    try {
      questions = form.questions();
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      form.wrong(error);
      return;
    }
    state.asking = new AbortController();
    busy(true);
    const talks = form.talks;
    try {
      if (talks) await converse(questions, state.asking.signal);
      else await answers(questions, state.asking.signal);
    } catch (error) {
      tell("");
      byId("errors").replaceChildren(refusal(error, "Nothing was asked"));
    } finally {
      state.asking = null;
      busy(false);
    }
    if (questions.some(({ agent }) => agent.state !== "ready")) load(); // by now it is
  }

  async function answers(questions, signal) {
    const files = Object.assign({}, ...questions.map((question) => question.files));
    const images = {};
    for (const [name, file] of Object.entries(files)) images[name] = await base64(file);
    const seen = files.image === undefined ? null : await picture(files.image);
    const places = questions.map((question) => new Place(question));
    show(seen, [sideBySide(places)]);
    const asking = places.map((place) => async () => {
      const own = Object.fromEntries(Object.keys(place.question.files).map((name) => [name, images[name]]));
      const { text, value } = await call("answers", { ...place.question.body, images: own }, signal);
      return [place.show(value, text, seen), value.status !== "failed"];
    });
    await askAll(places, asking, "agents answered");
  }

  async function converse(questions, signal) {
    const talks = new Talks();
    const places = questions.map((question) => new Place(question));
    show(null, [talks.form, sideBySide(places)]);
    state.talks = talks;
    const asking = places.map((place, at) => async () => {
      const { value } = await call("conversations", questions[at].body, signal);
      place.node.replaceWith(talks.add(value, questions[at].body));
      return [`The conversation with ${place.agent.name} has begun.`, true];
    });
    await askAll(places, asking, "conversations have begun");
    talks.settle();
  }

  /** Ask all at once, and tell how far they are. Each of `asking` gives a few words, and whether it went well. */
  async function askAll(places, asking, what) {
    const only = places.length === 1;
    let done = 0;
    let good = 0;
    const one = async (place, ask) => {
      let words;
      try {
        let isGood;
        [words, isGood] = await ask();
        if (isGood) good += 1;
      } catch (error) {
        if (error.status === 401) wantKey();
        words = place.refuse(error);
      }
      done += 1;
      const left = places.length - done;
      const goOn = left ? `; ${left} still asked …` : ".";
      tell(only ? words : `${good} of ${places.length} ${what}${goOn}`);
    };
    tell(only ? `${places[0].agent.name} is asked …` : `${places.length} agents are asked …`);
    await Promise.all(places.map((place, at) => one(place, asking[at])));
  }

  // showing

  /** `seen` is the picture that the parts show. */
  function show(seen, parts) {
    if (state.seen?.url) URL.revokeObjectURL(state.seen.url);
    state.talks?.leave();
    state.talks = null;
    byId("shown").replaceChildren(...parts);
    state.seen = seen;
    const section = byId("answer");
    if (section.getBoundingClientRect().top > innerHeight / 2) section.scrollIntoView(); // on a phone it is far below
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

  byId("ask-form").addEventListener("submit", ask);
  byId("stop").addEventListener("click", () => {
    byId("submit").focus();
    state.asking?.abort();
  });
  byId("key-form").addEventListener("submit", useKey);
  byId("forget").addEventListener("click", () => wantKey("The key is forgotten."));
  load();
}
