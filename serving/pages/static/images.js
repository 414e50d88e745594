// A place for one picture: with a preview.
"use strict";

{
  const { el, quiet } = Turinglike;

  const NONE = "no picture yet";

  /** `changed` is called whenever the picture changes. */
  class ImageField {
    constructor(holder, id, label, changed) {
      this.changed = changed;
      this.address = null; // of a picture that this server has
      this.input = el("input", { type: "file", id, accept: "image/*", "aria-describedby": `${id}-about` });
      this.about = el("p.note", { id: `${id}-about` }, NONE);
      this.preview = el("img.preview", { alt: "", hidden: true });
      this.button = quiet("Remove", () => this.clear(), { hidden: true });
      const parts = [el("label", { for: id }, label), this.input, this.about, this.button];
      holder.replaceChildren(el("div.drop", this.preview, el("div", parts)));
      this.input.addEventListener("change", () => {
        this.address = null;
        this.look();
      });
      this.preview.addEventListener("load", () => {
        this.preview.hidden = false;
        this.tell(`${this.preview.naturalWidth} × ${this.preview.naturalHeight} px`);
      });
      this.preview.addEventListener("error", () => {
        this.preview.hidden = true;
        this.tell("this browser cannot show it; an agent may read it all the same");
      });
    }

    /** The picture's file, or null. */
    get file() {
      return this.input.files[0] ?? null;
    }

    /** Where a program finds the picture: its address on this server, else null, then it is a file of this name. */
    get source() {
      return { address: this.address, name: this.file.name, type: this.file.type };
    }

    clear() {
      this.input.value = "";
      this.address = null;
      this.look();
      this.input.focus();
    }

    /** Take a picture that this server has, as if its file had been chosen. */
    take(file, address) {
      const chosen = new DataTransfer();
      chosen.items.add(file);
      this.input.files = chosen.files;
      this.address = address;
      this.look();
    }

    /** Show what the field holds now. */
    look() {
      if (this.preview.src) URL.revokeObjectURL(this.preview.src);
      this.preview.removeAttribute("src");
      this.preview.hidden = true;
      this.button.hidden = this.file === null;
      if (this.file !== null) this.preview.src = URL.createObjectURL(this.file);
      this.tell("");
      this.changed();
    }

    tell(more) {
      if (this.file === null) {
        this.about.textContent = NONE;
        return;
      }
      const kib = Math.max(1, Math.round(this.file.size / 1024)).toLocaleString("en");
      this.about.textContent = [this.file.name, `${kib} KiB`, more].filter((part) => part).join(", ");
    }
  }

  /** The file as a picture that can be drawn on: its own URL and its size in pixels; both 0 if it cannot be shown. */
  async function picture(file) {
    const url = URL.createObjectURL(file);
    const image = new Image();
    image.src = url;
    try {
      await image.decode();
      return { url, width: image.naturalWidth, height: image.naturalHeight };
    } catch {
      URL.revokeObjectURL(url);
      return { url: null, width: 0, height: 0 };
    }
  }

  Object.assign(Turinglike, { ImageField, picture });
}
