// Answers of one or several agents, each in a place of its own, as they come.
"use strict";

{
  const { answer, answerPrograms, code, el, lazily, note, quote, recorded, small, summary, TASKS } = Turinglike;
  const { Refusal } = Turinglike;

  /** Why a request got no answer, in words and with the id by which the server's log knows it. */
  function refusal(error, what) {
    if (!(error instanceof Refusal)) {
      reportError(error);
      return el("div.box-notice.bad", "This page has a fault: it cannot show what the server replied.");
    }
    const { message, problems, requestId, retryAfter } = error;
    const problem = ({ field, message: why }) => el("li", code(field), ": ", why);
    return el(
      "div.box-notice.bad",
      el("p", el("strong", `${what}: `), message, "."),
      problems.length > 1 && el("ul", problems.map(problem)),
      retryAfter !== null && el("p", `Try again in ${retryAfter} s.`),
      note("Code ", code(error.code), requestId !== null && [", request ", code(requestId)]),
    );
  }

  /** A place for an agent's answer to `question`; until there is one it says that the agent is asked. */
  class Place {
    constructor(question) {
      this.question = question;
      this.agent = question.agent;
      this.node = el("div.place");
      const isLoaded = this.agent.state === "ready";
      this.put("other", el("p.waiting", isLoaded ? "is asked …" : "is loaded first, which may take minutes …"));
    }

    put(kind, part) {
      const head = el("h3", quote(this.agent.name), " ", small(TASKS[this.question.task]));
      this.node.replaceChildren(el(`article.card.${kind}`, head, part));
    }

    /** Show the record, which is `line` in a file of records; `seen` is the picture that was asked about. Returns a
     * few words about it. */
    show(record, line, seen) {
      const card = answer(record, this.question.body.stimulus, seen);
      card.append(
        lazily("The answer as JSON", () => recorded(record, line)),
        lazily("The same by program", () => answerPrograms(this.question)),
      );
      this.node.replaceChildren(card);
      return summary(record);
    }

    /** Show why there is no answer. Returns a few words about it. */
    refuse(error) {
      if (error.name === "AbortError") this.put("other", el("p", "You did not wait for the answer."));
      else this.put("failed", refusal(error, "There is no answer"));
      return `${this.agent.name} gave no answer`;
    }
  }

  /** Places one beside the other. */
  const sideBySide = (places) => el("div.places", places.map(({ node }) => node));

  Object.assign(Turinglike, { Place, refusal, sideBySide });
}
