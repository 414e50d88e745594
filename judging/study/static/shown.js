// What a judge sees of a trial: the answer, and what it answers. Pictures are decoded before anything is on screen.
"use strict";

{
  const { chat, el, kit, quote } = Turinglike;
  const files = new Map(); // address -> Promise of its bytes

  async function loaded(address) {
    const reply = await fetch(address);
    if (!reply.ok) throw new Error(`${address}: ${reply.status}`);
    return reply.blob();
  }

  /** The bytes at `address`; got once, however early. */
  function file(address) {
    if (!files.has(address)) {
      const promise = kit ? kit.file(address) : loaded(address);
      promise.catch(() => files.delete(address));
      files.set(address, promise);
    }
    return files.get(address);
  }

  /** A picture that is ready to be shown. Each has a URL of its own, so that a clip begins at its beginning. */
  async function picture(address, alt, name) {
    const url = URL.createObjectURL(await file(address));
    const image = el("img", { class: name, src: url, alt });
    await image.decode();
    image.addEventListener("turinglike-gone", () => URL.revokeObjectURL(url));
    return image;
  }

  /** How long a GIF takes once, in ms, read from its blocks; 0 for what is none. */
  async function duration(address) {
    const bytes = new Uint8Array(await (await file(address)).arrayBuffer());
    if (String.fromCharCode(...bytes.slice(0, 3)) !== "GIF") return 0;
    const colors = (flags) => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0);
    const blocks = (at) => {
      while (bytes[at]) at += bytes[at] + 1;
      return at + 1;
    };
    let at = 13 + colors(bytes[10]);
    let total = 0;
    while (at < bytes.length && bytes[at] !== 0x3b) {
      const isExtension = bytes[at] === 0x21;
      if (isExtension && bytes[at + 1] === 0xf9) total += 10 * (bytes[at + 4] | (bytes[at + 5] << 8));
      at = blocks(isExtension ? at + 2 : at + 11 + colors(bytes[at + 9]));
    }
    return total;
  }

  const named = (name, value) => el("p.given", el("span.name", name), " ", el("strong", quote(value)));

  const hasDelay = ({ delay_s: seconds }) => Number.isFinite(seconds);

  /** The messages of an answer, with the seconds that they took where the trial shows them. */
  function messagesOf(answer, phrases) {
    const about = (message) =>
      hasDelay(message) ? phrases.delay.replace("{seconds}", message.delay_s.toFixed(1)) : "";
    return chat(answer.messages, [], about);
  }

  /** What the seconds beside messages are, if any of the answers has some. */
  const aboutDelays = (answers, phrases) =>
    answers.some(({ messages }) => messages.some(hasDelay)) ? [el("p.small", phrases.delays)] : [];

  /** The elements of a trial, in order, all of them decoded. */
  async function shown(trial, phrases) {
    if (trial.clip) return [await picture(trial.clip, phrases.clip_alt, "photograph clip")];
    const parts = [];
    for (const name of ["target_image", "image"])
      if (trial[name]) parts.push(await picture(trial[name], phrases.picture_alt, "photograph"));
    const answer = trial.answer ?? {};
    if (trial.cue !== undefined) {
      for (const [cue, word] of trial.examples ?? []) parts.push(el("p.small", `${cue} – ${word}`));
      parts.push(named(phrases.cue, trial.cue), named(phrases.association, answer.word));
    } else if (trial.beside) {
      const side = (name, conversation) => el("section", el("h2", name), messagesOf(conversation, phrases));
      parts.push(...aboutDelays([answer, trial.beside], phrases));
      parts.push(el("div.pair", side(phrases.first, answer), side(phrases.second, trial.beside)));
    } else if (answer.messages) parts.push(...aboutDelays([answer], phrases), messagesOf(answer, phrases));
    else if (answer.labels) {
      const rows = answer.labels.map((label) => el("li", quote(label)));
      parts.push(el("div.given", el("span.name", phrases.answer), el("ol", rows)));
    } else if (answer.text !== undefined) parts.push(el("blockquote", { dir: "auto" }, quote(answer.text)));
    else if (answer.color !== undefined) parts.push(named(phrases.answer, answer.color));
    return parts;
  }

  /** Get files that the next trials need. */
  function ahead(addresses) {
    for (const address of addresses) file(address).catch(() => {});
  }

  Object.assign(Turinglike, { ahead, duration, shown });
}
