// A conversation of a person with an agent: bubbles, what filters noticed, a place to write, and its record.
"use strict";

{
  const { badge, bubble, call, count, el, note, quiet, quote, recorded, small, writer } = Turinglike;

  class Talk {
    /** `begun` is what the server said when the conversation was opened; `page` tells what happens. */
    constructor(begun, page) {
      const { agent, exchanges, id, names, person } = begun;
      this.agent = agent;
      this.path = `conversations/${encodeURIComponent(id)}`;
      this.page = page;
      this.isBurst = begun.mode === "burst";
      this.known = 0;
      this.listening = new AbortController();
      this.names = { A: names[0], B: names[1] };
      this.mine = person;
      this.other = person === "A" ? "B" : "A";
      this.list = el("ol.chat", { "aria-label": `Conversation with ${agent}`, role: "log", tabindex: 0 });
      this.end = note("The conversation is over: all its messages have been said.");
      const hint = el("span.small", { id: "message-note" }, "Enter sends; Shift and Enter begin a new line.");
      const place = { hint, rows: 2, "aria-describedby": "message-note" };
      this.place = writer("Your message", "Send", (text) => this.send(text), place);
      this.text = this.place.area;
      this.form = this.place.form;
      this.record = el("div");
      this.recordButton = quiet("Show the record", () => this.showRecord());
      const amount = `; ${count(exchanges, "message")} in all${this.isBurst ? ", whenever you like" : ""}. `;
      const [you, other] = [this.mine, this.other].map((letter) => quote(this.names[letter]));
      const who = [`You are ${person}, `, you, "; the agent is ", other, "."];
      const about = note("Topic ", quote(begun.topic), amount, who);
      this.parts = [
        el("article.card", el("h3", agent, " ", small("Conversation")), about, this.list, this.end, this.form),
        el("div.record", this.recordButton),
        this.record,
      ];
      this.hear(begun);
      if (this.isBurst) this.listen();
    }

    focus() {
      (this.form.hidden ? this.list : this.text).focus();
    }

    async send(text) {
      if (this.isBurst) return this.sendAtOnce(text);
      this.hold(true);
      this.page.tell("");
      const waiting = [this.bubble(this.mine, text), this.bubble(this.other, "…")];
      try {
        const { value } = await call(`${this.path}/messages`, { text });
        waiting.forEach((row) => row.remove());
        this.text.value = "";
        this.hear(value);
        if (value.ended || this.record.hasChildNodes()) await this.showRecord();
      } catch (error) {
        waiting.forEach((row) => row.remove());
        this.page.refused(error, "The message was not taken");
      } finally {
        this.hold(false);
        this.focus();
      }
    }

    /** In a burst dialogue nobody waits: what was sent comes back with all else that is heard. One message goes after
     * the other, or the second might come first. */
    async sendAtOnce(text) {
      this.text.value = "";
      this.page.tell("");
      const before = this.sent;
      let isSent;
      this.sent = new Promise((done) => (isSent = done));
      await before;
      try {
        await call(`${this.path}/messages`, { text });
      } catch (error) {
        this.place.restore(text);
        this.page.refused(error, "The message was not taken");
      }
      isSent();
    }

    async listen() {
      const { signal } = this.listening;
      while (!this.isOver && !signal.aborted) {
        try {
          const { value } = await call(`${this.path}/messages?after=${this.known}&wait=25`, undefined, signal);
          this.hear(value);
          if (value.ended || (value.messages.length && this.record.hasChildNodes())) await this.showRecord();
        } catch (error) {
          if (signal.aborted) return;
          this.page.refused(error, "The agent says nothing");
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
      this.form.hidden = ended;
      this.list.scrollTop = this.list.scrollHeight;
    }

    bubble(speaker, text) {
      const isMine = speaker === this.mine;
      const who = [isMine ? "you" : this.agent, " (", quote(this.names[speaker]), ")"];
      const row = bubble("li", isMine, who, text);
      this.list.append(row);
      this.list.scrollTop = this.list.scrollHeight;
      return row;
    }

    hold(is) {
      this.place.off(is);
      this.text.readOnly = is;
    }

    async showRecord() {
      try {
        const { value } = await call(this.path);
        this.record.replaceChildren(recorded(value.record, JSON.stringify(value.record)));
        this.recordButton.hidden = true; // from now on it follows the conversation
      } catch (error) {
        this.page.refused(error, "There is no record");
      }
    }

    /** The page shows something else now: the server may forget the conversation. */
    leave() {
      this.listening.abort();
      call(this.path, undefined, undefined, "DELETE").catch(() => {}); // it forgets by itself, only later
    }
  }

  Object.assign(Turinglike, { Talk });
}
