// The dashboard of a study: asks for a key, then shows how the study goes, and lets the lab send, export and stop.
"use strict";

{
  const { byId, call, el, figures, hasKey, keyHeaders, people, quiet, setKey, stateOf, tiles, troubleOf, withCode } =
    Turinglike;
  const PAUSE = 5000; // ms between two looks at the study
  const LONG = 60_000; // ms between looks where each takes long, or the server is away
  let last = null; // the status that is shown
  let lastText = "";
  let timer = 0;

  function trouble(text) {
    byId("trouble").hidden = !text;
    byId("trouble").replaceChildren(...withCode(text));
  }

  function draw() {
    byId("data").replaceChildren(...figures(last).flat().filter(Boolean));
    byId("tiles").replaceChildren(...tiles(last));
    drawPeople();
    drawControls();
  }

  const drawPeople = () => byId("people").replaceChildren(...people(last, drawPeople).filter(Boolean));

  function show({ value, text }) {
    if (byId("board").hidden) {
      byId("key-form").hidden = true;
      byId("board").hidden = byId("leave").hidden = false;
      byId("title").textContent = value.title;
      document.title = value.title;
      makeControls(value);
    }
    last = value;
    if (text !== lastText) draw(); // what has not changed stays: where one reads, or has put the focus
    lastText = text;
    trouble(troubleOf(value));
    const time = new Date().toLocaleTimeString("en-GB");
    byId("state").replaceChildren(stateOf(value), ` as of ${time}`);
  }

  /** Look at the study, again and again; a tab that is not seen does not ask. */
  async function look() {
    clearTimeout(timer);
    let pause = PAUSE;
    const began = performance.now();
    if (!document.hidden) {
      try {
        const reply = await call("admin/status");
        if (!hasKey()) return; // left meanwhile
        show(reply);
        pause = Math.min(LONG, Math.max(PAUSE, 10 * (performance.now() - began)));
      } catch (error) {
        if (error.status === 401) return leave("This is not the key.");
        trouble(`No news: ${error.message}. The figures below are older.`);
        pause = 2 * PAUSE;
      }
    }
    timer = setTimeout(look, pause);
  }

  function leave(why = "") {
    clearTimeout(timer);
    setKey(null);
    last = null;
    lastText = "";
    byId("board").hidden = byId("leave").hidden = true;
    for (const id of ["tiles", "data", "controls", "people", "state"]) byId(id).replaceChildren();
    byId("title").textContent = document.title = "How far the study is";
    byId("refused").textContent = why;
    byId("key-form").hidden = false;
    byId("key").focus();
  }

  // what the lab can do

  const controls = {};

  /** Ask the server to do something; what it says is shown, and refusals are told beside the button. */
  async function act(told, path, body) {
    told.textContent = "";
    try {
      return await call(path, body);
    } catch (error) {
      if (error.status === 401) leave("This is not the key.");
      else told.textContent = error.message;
      return null;
    }
  }

  const told = () => el("p.bad", { role: "alert" });

  async function copy(text, button) {
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy"; // without TLS browsers have no clipboard
    }
    setTimeout(() => (button.textContent = name), 2000);
  }

  function makeControls({ address }) {
    byId("controls").replaceChildren(sending(address), exporting(), stopping());
  }

  /** The address that judges get; with personal links a place to make them. */
  function sending({ entry, parameters }) {
    const base = location.href.replace(/admin\/?([?#].*)?$/, "");
    const heading = el("h2", "Send");
    if (entry === "links") return el("section", heading, linking(base));
    const query = parameters.map((name) => `${name}=…`).join("&");
    const text = query ? `${base}?${query}` : base;
    const area = el("textarea", { readonly: true, rows: 2, "aria-label": "The address to send" }, text);
    const panel = query ? el("p.note", "The panel fills in what stands for …") : "";
    const local = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
    const reach = local ? el("p.note", "This address works on this machine only.") : "";
    return el("section", heading, area, el("div.line", quiet("Copy", (event) => copy(text, event.currentTarget))), panel, reach);
  }

  function linking(base) {
    const number = el("input", { id: "number", type: "number", min: 1, max: 1000, value: 10 });
    const refused = told();
    const place = el("div");
    const make = async () => {
      const reply = await act(refused, "admin/links", { number: Number(number.value) });
      if (reply === null) return;
      const text = reply.value.links.map((token) => `${base}?link=${token}`).join("\n");
      place.replaceChildren(
        el("textarea", { readonly: true, rows: 8, "aria-label": "New personal links" }, text),
        el("div.line", quiet("Copy", (event) => copy(text, event.currentTarget))),
        el("p.note", "Copy them now: the study keeps only hashes, and nobody can show these links again."),
      );
    };
    const line = el("div.line", el("label", { for: "number" }, "Personal links"), number, quiet("Make links", make));
    return [line, refused, place];
  }

  function exporting() {
    const personal = el("input", { id: "personal", type: "checkbox" });
    const refused = told();
    const load = async () => {
      refused.textContent = "";
      const address = `admin/export${personal.checked ? "?personal=true" : ""}`;
      const reply = await fetch(address, { headers: keyHeaders(), cache: "no-store", credentials: "omit" }).catch(() => null);
      if (!reply?.ok) {
        const body = await reply?.json().catch(() => null);
        refused.textContent = body?.error?.message ?? "the server cannot be reached";
        return;
      }
      const name = /filename="([^"]+)"/.exec(reply.headers.get("content-disposition") ?? "")?.[1] ?? "study.zip";
      const url = URL.createObjectURL(await reply.blob());
      el("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    };
    const choice = el("label.choice", { for: "personal" }, personal, "with personal data, and who is paid");
    return el("section", el("h2", "Export"), el("div.line", choice), quiet("Export as a zip file", load), refused);
  }

  function stopping() {
    const refused = told();
    const set = async (path, body) => {
      const reply = await act(refused, path, body);
      if (reply !== null) show(reply);
    };
    const entry = quiet("", () => set("admin/entry", { open: last.entry === "stopped" }));
    const sure = () => {
      const there = (last.judges["at it"] ?? 0) + (last.judges.begun ?? 0);
      return `Nobody can answer any more, and this cannot be undone. Not at the end yet: ${there}. Close the study?`;
    };
    const close = quiet("Close the study", () => confirm(sure()) && set("admin/close", {}));
    const about = el("p.note");
    Object.assign(controls, { entry, close, about });
    return el("section", el("h2", "Stop"), el("div.line", entry, close), about, refused);
  }

  function drawControls() {
    const { entry, close, about } = controls;
    const isClosed = last.entry === "closed";
    entry.textContent = last.entry === "stopped" ? "Let new people begin" : "Let nobody new begin";
    entry.hidden = close.hidden = isClosed;
    about.textContent = isClosed
      ? "The study is closed."
      : "People who have begun can finish and get their code, also when nobody new may begin.";
  }

  byId("leave").addEventListener("click", () => leave());
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = byId("key").value.trim();
    byId("key").value = "";
    byId("refused").textContent = "";
    if (!key) return;
    setKey(key);
    look();
  });
  document.addEventListener("visibilitychange", () => !document.hidden && hasKey() && look());
  if (hasKey()) look();
  else byId("key-form").hidden = false;
}
