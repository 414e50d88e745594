// The form: which of its fields are asked for, and what they ask of each agent.
"use strict";

{
  const { byId, el, examplePictures, exampleTexts, ImageField, material } = Turinglike;

  const WORDS = ["tea", "doctor", "music"];
  const TOPICS = ["books", "food", "travel"];

  /** Something that the page can see to be wrong with a field. */
  class Wrong extends Error {
    constructor(field, message) {
      super(message);
      this.field = field;
    }
  }

  /** Text of a field as a whole number, null for none. Raises Wrong. */
  function whole(id, name) {
    const text = byId(id).value.trim();
    if (text === "") return null;
    const number = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number))
      throw new Wrong(byId(id), `${name} is a whole number, 0 or above.`);
    return number;
  }

  /** The field with further fields of the stimulus. Raises Wrong. */
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

  const isGiven = ([, value]) => value !== null;

  /** `choice` has the agents that are asked. */
  class Form {
    constructor(choice) {
      this.choice = choice;
      this.image = new ImageField(byId("image-field"), "image", "Picture", () => this.hint());
      this.target = new ImageField(byId("target-field"), "target", "Picture of the target", () => {});
      byId("image-field").append(...examplePictures(this.image));
      byId("cue-field").append(exampleTexts(byId("cue"), "Example words", WORDS));
      byId("topic-field").append(exampleTexts(byId("topic"), "Example topics", TOPICS));
      byId("mode-field").addEventListener("change", () => this.showFields());
      byId("cue").addEventListener("input", () => this.hint());
    }

    get talks() {
      return this.choice.task === "conversation";
    }

    get isPictured() {
      return material(this.choice.task) === "picture";
    }

    get looking() {
      return this.choice.all.filter(({ task }) => task === "attention_prediction").map(({ agent }) => agent);
    }

    get searches() {
      return this.looking.length > 0 && document.querySelector("input[name=mode]:checked").value === "search";
    }

    /** Show the fields of what is chosen. */
    showFields() {
      const modes = [...new Set(this.looking.flatMap((agent) => agent.modes))];
      if (modes.length === 1) document.querySelector(`input[name=mode][value=${modes[0]}]`).checked = true;
      byId("mode-field").hidden = modes.length < 2;
      byId("image-field").hidden = !this.isPictured;
      byId("target-field").hidden = !this.searches;
      byId("cue-field").hidden = this.choice.task !== "word_association";
      byId("talk-fields").hidden = !this.talks;
      byId("sample-field").hidden = this.talks;
      const count = this.choice.all.length;
      const one = this.talks ? "Start a conversation" : "Ask";
      const several = this.talks ? `Start ${count} conversations` : `Ask ${count} agents`;
      byId("submit").textContent = count === 1 ? one : several;
      this.hint();
    }

    hint() {
      byId("stimulus-id").placeholder = this.talks ? "a random one" : this.ownId();
    }

    /** The stimulus's id where none is given: of what is asked, in plain signs. */
    ownId() {
      if (this.talks) return `page/talk-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
      const from = this.isPictured ? (this.image.file?.name ?? "") : byId("cue").value;
      const plain = from
        .normalize("NFC")
        .replace(/[^\p{L}\p{N} ._-]/gu, "_")
        .trim()
        .slice(0, 100);
      return `page/${/^\.*$/.test(plain) ? "stimulus" : plain}`;
    }

    /** What is asked of each agent: the `body` that is posted without its images, their `files`, and as `pictures`
     * where a program finds these. Raises Wrong. */
    questions() {
      const id = byId("stimulus-id").value || this.ownId();
      const numbers = { seed: whole("seed", "The seed") };
      if (this.talks) return this.choice.all.map(({ agent }) => this.talk(agent, { id, ...numbers }));
      numbers.sample = whole("sample", "The sample") ?? 0;
      return this.choice.all.map((pair, at, all) => {
        const isSecond = all.slice(0, at).some(({ agent }) => agent === pair.agent);
        return this.question(pair, id, isSecond, numbers);
      });
    }

    talk(agent, numbers) {
      const fields = {
        ...numbers,
        topic: byId("topic").value.trim() || null,
        who_starts: byId("starts").value || null,
        mode: byId("talk-mode").value,
        exchanges: whole("exchanges", "The number of messages"),
      };
      const given = Object.fromEntries(Object.entries(fields).filter(isGiven));
      const body = { agent: agent.name, person: byId("person").value, ...given, ...extra() };
      return { agent, task: "conversation", body };
    }

    /** An agent's second task has an id of its own, as in a run; otherwise a server that keeps answers would keep the
     * last one alone. The other fields are for the tasks of the form's first agent: other tasks have other fields. */
    question({ agent, task }, name, isSecond, numbers) {
      const names = isSecond ? { id: `${task}/${name}`, benchmark_id: name } : { id: name };
      const stimulus = { ...names, task, ...(task === this.choice.task ? extra() : {}) };
      const held = {};
      if (this.isPictured) held.image = this.image;
      if (this.isPictured && this.image.file === null) throw new Wrong(this.image.input, "Choose a picture first.");
      if (task === "attention_prediction" && this.searches) {
        stimulus.mode = "search";
        const needed = "A search needs a picture of its target, or target_box among the other fields.";
        if (this.target.file !== null) held.target_image = this.target;
        else if (stimulus.target_box === undefined) throw new Wrong(this.target.input, needed);
      }
      if (task === "word_association") {
        stimulus.cue = byId("cue").value.trim();
        if (stimulus.cue === "") throw new Wrong(byId("cue"), "Type a cue word first.");
      }
      const body = Object.fromEntries(Object.entries({ agent: agent.name, stimulus, ...numbers }).filter(isGiven));
      const files = Object.entries(held).map(([field, { file }]) => [field, file]);
      const pictures = Object.entries(held).map(([field, { source }]) => [field, source]);
      return { agent, task, body, files: Object.fromEntries(files), pictures: Object.fromEntries(pictures) };
    }

    /** Say what is wrong with a field. */
    wrong({ field, message }) {
      const details = field.closest("details");
      if (details !== null) details.open = true;
      field.closest(".field").append(el("p.bad", { id: "wrong", role: "alert" }, message));
      field.setAttribute("aria-invalid", "true");
      field.addEventListener("input", () => this.right(), { once: true });
      field.focus();
    }

    /** What was wrong with a field is so no longer, or is looked at anew. */
    right() {
      byId("wrong")?.remove();
      for (const field of document.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
    }
  }

  Object.assign(Turinglike, { Form, Wrong });
}
