// Examples to click, for somebody who has nothing at hand: pictures, cue words and topics.
"use strict";

{
  const { el, note, quiet } = Turinglike;

  const PICTURES = [
    { name: "cat.jpg", shows: "a cat" },
    { name: "coffee.jpg", shows: "a cup of coffee" },
    { name: "rocket.jpg", shows: "a rocket" },
  ]; // static/pictures.txt says whose they are

  /** Buttons that put one of the server's pictures into the image field. */
  function examplePictures(field) {
    const take = async (name) => {
      const address = new URL(`static/${name}`, document.baseURI).href;
      try {
        const reply = await fetch(address, { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" });
        if (!reply.ok) throw new Error(`HTTP ${reply.status}`);
        field.take(new File([await reply.blob()], name, { type: "image/jpeg" }), address);
      } catch (error) {
        field.about.textContent = `The example cannot be fetched: ${error.message}.`;
      }
    };
    const buttons = PICTURES.map(({ name, shows }) =>
      el(
        "button.thumb",
        { type: "button", "aria-label": `Take the picture of ${shows}`, click: () => take(name) },
        el("img", { src: `static/${name}`, alt: "", width: 84, height: 56, loading: "lazy" }),
      ),
    );
    const credit = note(el("a", { href: "static/pictures.txt" }, "Authors and licences of these pictures"));
    return [el("div.examples", { role: "group", "aria-label": "Example pictures" }, note("Or try:"), buttons), credit];
  }

  /** Buttons that put a text into the input. */
  function exampleTexts(input, label, texts) {
    const take = (text) => {
      input.value = text;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const buttons = texts.map((text) => quiet(text, () => take(text)));
    return el("div.examples", { role: "group", "aria-label": label }, note("Or try:"), buttons);
  }

  Object.assign(Turinglike, { examplePictures, exampleTexts });
}
