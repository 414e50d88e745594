// Conversations of a person with one agent, or with several that hear the same: bubbles, what filters noticed, a place
// to write, and the record.
"use strict";

{
  const { badge, bubble, call, count, el, lazily, note, quiet, quote, recorded, refusal, small } = Turinglike;
  const { talkPrograms, writer } = Turinglike;

  /** A conversation with one agent. */
  class Talk {
    /** `begun` is what the server said when `body` opened the conversation; `changed` is called when it is over. */
    constructor(begun, body, changed) {
      const { agent, exchanges, id, names, person } = begun;
      this.agent = agent;
      this.begun = begun;
      this.body = body;
      this.said = [];
      this.changed = changed;
      this.path = `conversations/${encodeURIComponent(id)}`;
      this.isBurst = begun.mode === "burst";
      this.known = 0;
      this.listening = new AbortController();
      this.names = { A: names[0], B: names[1] };
      this.mine = person;
      this.other = person === "A" ? "B" : "A";
      const name = `Conversation with ${agent}`;
      this.list = el("ol.chat", { "aria-label": name, tabindex: 0 });
      const log = el("div", { "aria-label": name, role: "log" }, this.list); // a list that is a log were no list
      this.end = note("The conversation is over: all its messages have been said.");
      this.trouble = el("div", { role: "alert" });
      const amount = `; ${count(exchanges, "message")} in all${this.isBurst ? ", whenever you like" : ""}. `;
      const [you, other] = [this.mine, this.other].map((letter) => quote(this.names[letter]));
      const who = [`You are ${person}, `, you, "; the agent is ", other, "."];
      const about = note("Topic ", quote(begun.topic), amount, who);
      const head = el("h3", agent, " ", small("Conversation"));
      this.place = el("div"); // to write, where this is the only conversation
      this.record = el("div");
      this.recordPart = lazily("The conversation as JSON", () => this.record);
      this.recordPart.addEventListener("toggle", () => this.recordPart.open && this.showRecord());
      this.programs = el("div");
      this.programPart = lazily("The same by program", () => this.programs);
      this.programPart.addEventListener("toggle", () => this.showPrograms());
      this.programPart.hidden = this.isBurst; // a program would have to write at the same moments
      const parts = [log, this.end, this.trouble, this.place, this.recordPart, this.programPart];
      this.node = el("div.place", el("article.card", head, about, parts));
      this.hear(begun);
      if (this.isBurst) this.listen();
    }

    /** Say a text, and hear the answer. Whether the server took it. */
    async say(text) {
      this.trouble.replaceChildren();
      const waiting = [this.bubble(this.mine, text), this.bubble(this.other, "…")];
      try {
        const { value } = await call(`${this.path}/messages`, { text });
        waiting.forEach((row) => row.remove());
        this.said.push(text);
        this.hear(value);
        return true;
      } catch (error) {
        waiting.forEach((row) => row.remove());
        this.trouble.replaceChildren(refusal(error, "The message was not taken"));
        return false;
      }
    }

    /** In a burst dialogue nobody waits: what was sent comes back with all else that is heard. One message goes after
     * the other, or the second might come first. Whether the server took it. */
    async sayAtOnce(text) {
      this.trouble.replaceChildren();
      const before = this.sent;
      let isSent;
      this.sent = new Promise((done) => (isSent = done));
      await before;
      try {
        await call(`${this.path}/messages`, { text });
        return true;
      } catch (error) {
        this.trouble.replaceChildren(refusal(error, "The message was not taken"));
        return false;
      } finally {
        isSent();
      }
    }

    async listen() {
      const { signal } = this.listening;
      while (!this.isOver && !signal.aborted) {
        try {
          const { value } = await call(`${this.path}/messages?after=${this.known}&wait=25`, undefined, signal);
          this.hear(value);
        } catch (error) {
          if (signal.aborted) return;
          this.trouble.replaceChildren(refusal(error, "The agent says nothing"));
          if (error.status !== 0 && error.status < 500) return;
          await new Promise((done) => setTimeout(done, 2000));
        }
      }
    }

    /** Show what was said, and whether that was all. */
    hear({ messages, ended }) {
      this.known += messages.length;
      this.isOver = ended;
      for (const message of messages) {
        const row = this.bubble(message.agent === this.agent ? this.other : this.mine, message.text);
        row.append(
          ...message.flags.map(({ filter, found }) => el("span.flag", badge(filter, "warn"), " ", quote(found))),
        );
      }
      this.end.hidden = !ended;
      this.list.scrollTop = this.list.scrollHeight;
      if (ended || (messages.length && this.recordPart.open)) this.showRecord(); // once over, it may be forgotten
      this.showPrograms();
      if (ended) this.changed();
    }

    bubble(speaker, text) {
      const isMine = speaker === this.mine;
      const who = [isMine ? "you" : this.agent, " (", quote(this.names[speaker]), ")"];
      const row = bubble("li", isMine, who, text);
      this.list.append(row);
      this.list.scrollTop = this.list.scrollHeight;
      return row;
    }

    async showRecord() {
      try {
        const { value } = await call(this.path);
        this.record.replaceChildren(recorded(value.record, JSON.stringify(value.record)));
      } catch (error) {
        this.record.replaceChildren(refusal(error, "There is no record"));
      }
    }

    showPrograms() {
      if (!this.programPart.open) return;
      const none = note("Say something first.");
      this.programs.replaceChildren(this.said.length ? talkPrograms(this) : none);
    }

    /** The page shows something else now: the server may forget the conversation. */
    leave() {
      this.listening.abort();
      call(this.path, undefined, undefined, "DELETE").catch(() => {}); // it forgets by itself, only later
    }
  }

  /** One place to write to one or several agents, all by turns or all in bursts. */
  class Talks {
    constructor() {
      this.talks = [];
      const hint = el("span.small", { id: "message-note" }, "Enter sends; Shift and Enter begin a new line.");
      const place = { hint, rows: 2, "aria-describedby": "message-note" };
      this.place = writer("Your message", "Send", (text) => this.send(text), place);
      this.text = this.place.area;
      this.form = this.place.form;
      this.form.hidden = true; // until all conversations have begun
    }

    /** Take in a conversation that has begun. Returns its node. */
    add(begun, body) {
      const talk = new Talk(begun, body, () => this.showForm());
      this.talks.push(talk);
      return talk.node;
    }

    get open() {
      return this.talks.filter((talk) => !talk.isOver);
    }

    showForm() {
      this.form.hidden = this.open.length === 0;
    }

    /** All have begun. The place to write stands above them, or in the card of a single one. */
    settle() {
      if (this.talks.length === 1) this.talks[0].place.append(this.form);
      this.showForm();
      this.focus();
    }

    focus() {
      if (this.form.hidden) this.talks[0]?.list.focus();
      else this.text.focus();
    }

    /** Send a text to all whose conversation goes on. It stays in its field where nobody took it. */
    async send(text) {
      if (this.talks[0].isBurst) {
        this.text.value = "";
        const taken = await Promise.all(this.open.map((talk) => talk.sayAtOnce(text)));
        if (!taken.includes(true)) this.place.restore(text);
        return;
      }
      this.hold(true);
      const talks = this.open;
      const taken = await Promise.all(talks.map((talk) => talk.say(text)));
      const isTaken = taken.includes(true);
      if (isTaken) this.text.value = "";
      talks.filter((_, at) => isTaken && !taken[at]).forEach((talk) => this.offer(talk, text));
      this.hold(false);
      this.focus();
    }

    /** A button for the one agent that did not take what the others took. */
    offer(talk, text) {
      const again = async () => {
        this.hold(true);
        if (!(await talk.say(text))) this.offer(talk, text);
        this.hold(false);
      };
      talk.trouble.append(quiet("Send it again", again));
    }

    hold(is) {
      this.place.off(is);
      this.text.readOnly = is;
    }

    leave() {
      this.talks.forEach((talk) => talk.leave());
    }
  }

  Object.assign(Turinglike, { Talks });
}
