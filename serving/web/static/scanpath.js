// A scanpath over its picture: numbered fixations on a yellow line, and the ring that judges see, played or by hand.
"use strict";

{
  const { coordinate, count, el, firstOf, folded, note, pairs, quiet, quote, svg } = Turinglike;

  const DRAWN = 15; // fixations with number and line; the ring shows them all
  const LISTED = 100;
  const EACH = 300; // milliseconds of the ring at a fixation
  const STOPS = {
    target: "the target was found",
    maximum: "the maximum number of fixations was reached",
    exhausted: "the whole map was inhibited",
    end: "the model ended the path",
  };
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  /** `shapes` over the picture, which is stretched to `frame` = [width, height] pixels. */
  function canvas(picture, [width, height], label, ...shapes) {
    const under = picture?.url
      ? svg("image", { href: picture.url, width, height, preserveAspectRatio: "none" })
      : svg("rect.nothing", { width: "100%", height: "100%" });
    const drawn = svg(
      "svg.canvas",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      under,
      shapes,
    );
    drawn.style.setProperty("--w", `${Math.max(width, height) / 220}px`);
    return drawn;
  }

  /** A path over its picture, if there is one. */
  function scanpath(answer, stimulus, picture) {
    const { fixations, frame } = answer;
    const [width, height] = frame;
    const drawn = width > 0 && height > 0 && fixations.length > 0 && picture !== null;
    const outside = fixations.flatMap(([x, y], at) => (x >= 0 && x < width && y >= 0 && y < height ? [] : [at + 1]));
    const list = `${outside.slice(0, 10).join(", ")}${outside.length > 10 ? ", …" : ""}`;
    return [
      drawn && play(answer, stimulus, picture),
      drawn &&
        fixations.length > DRAWN &&
        note(`The first ${DRAWN} of ${count(fixations.length, "fixation")} are drawn.`),
      outside.length > 0 && note(`Outside the frame: ${list}.`),
      pairs(facts(answer)),
      folded("Coordinates, x and y in pixels of the frame", el("ol.points", listed(answer))),
    ];
  }

  function facts(answer) {
    const rows = [["fixations", answer.fixations.length.toLocaleString("en")]];
    if (answer.stop) rows.push(["stopped because", STOPS[answer.stop] ?? quote(answer.stop)]);
    if (typeof answer.found === "boolean") {
      const place = answer.found && answer.found_at !== null ? ` at fixation ${answer.found_at + 1}` : "";
      rows.push(["target", answer.found ? `found${place}` : "not found"]);
    }
    if (answer.window)
      rows.push(["inhibition window", `${coordinate(answer.window)} px (dashed square around the first fixation)`]);
    if (answer.forced_first) rows.push(["first fixation", "forced to where every path starts; it is not a prediction"]);
    if (answer.selection) rows.push(["selection", quote(answer.selection)]);
    rows.push(["frame", `${answer.frame[0]} × ${answer.frame[1]} px`]);
    return rows;
  }

  function listed({ fixations, durations_ms: lasts }) {
    const duration = (at) => (lasts?.[at] === undefined ? "" : `, ${Math.round(lasts[at])} ms`);
    return firstOf(fixations, LISTED, ([x, y], at) => el("li", `(${coordinate(x)}, ${coordinate(y)})${duration(at)}`));
  }

  function play(answer, stimulus, picture) {
    const { fixations, frame, window: side } = answer;
    const radius = Math.max(...frame) / 32;
    const points = fixations.slice(0, DRAWN);
    const [x, y] = points[0].map((value) => coordinate(value - side / 2));
    const ring = svg("circle.ring", { r: coordinate(radius * 1.7) });
    const drawing = canvas(
      picture,
      frame,
      `Scanpath of ${count(points.length, "fixation")} drawn on the picture`,
      targetBox(stimulus, frame, picture),
      side > 0 && svg("rect.window", { x, y, width: coordinate(side), height: coordinate(side) }),
      svg("polyline.under", { points: line(points) }),
      svg("polyline.path", { points: line(points) }),
      points.map((point, at) => fixation(point, at, radius, answer.forced_first)),
      ring,
    );
    return el("figure.path", drawing, controls(drawing, ring, fixations));
  }

  /** Points as a polyline has them. */
  const line = (points) => points.map((point) => point.map(coordinate).join(",")).join(" ");

  function targetBox(stimulus, frame, picture) {
    const box = stimulus.target_box;
    if (!Array.isArray(box) || box.length !== 4 || !box.every(Number.isFinite) || !picture?.width) return [];
    const sx = frame[0] / picture.width; // the box is in pixels of the picture
    const sy = frame[1] / picture.height;
    const [x, y, width, height] = [box[0] * sx, box[1] * sy, box[2] * sx, box[3] * sy].map(coordinate);
    return [svg("rect.box", { x, y, width, height })];
  }

  /** The disc of a fixation and its number. */
  function fixation([x, y], at, radius, isForced) {
    const [cx, cy] = [coordinate(x), coordinate(y)];
    const kind = at === 0 && isForced ? "fixation forced" : "fixation";
    const number = { class: "number", x: cx, y: cy, dy: "0.36em", "font-size": coordinate(radius * 1.15) };
    return [svg("circle", { class: kind, cx, cy, r: coordinate(radius) }), svg("text", number, String(at + 1))];
  }

  /** A box and its text, in the line `line` below its upper edge; `letters` is the text's size. */
  function tagged([x, y, width, height], text, letters, line = 1) {
    const [left, top] = [coordinate(x), coordinate(y)];
    const [across, down] = [width, height].map((side) => coordinate(Math.max(side, 0)));
    const place = { x: coordinate(x + letters / 4), y: coordinate(Math.max(y, 0) + letters * line) };
    return [
      svg("rect.box", { x: left, y: top, width: across, height: down }),
      svg("text.tag", { ...place, "font-size": coordinate(letters) }, text),
    ];
  }

  /** A button and a slider that go through the fixations 1 to `last`, 0 being all of them; `show` draws one. */
  function player(last, { pause: between, label, all, show }) {
    let timer = null;
    const toggle = () => (timer === null ? start() : stop());
    const button = quiet("Play", toggle);
    const slider = el("input", { type: "range", min: 0, max: last, value: 0, "aria-label": label });
    const where = el("output.where");

    function go(number) {
      slider.value = String(number);
      const text = number === 0 ? all : `fixation ${number} of ${last}`;
      slider.setAttribute("aria-valuetext", text);
      where.textContent = text;
      show(number);
    }
    function stop() {
      clearTimeout(timer);
      timer = null;
      button.textContent = "Play";
    }
    function step() {
      const next = Number(slider.value) + 1;
      const isOver = !slider.isConnected || next > last;
      if (isOver) stop();
      else timer = setTimeout(step, between);
      go(isOver ? 0 : next);
    }
    function start() {
      button.textContent = "Pause";
      timer = setTimeout(step, 0);
    }
    slider.addEventListener("input", () => {
      stop();
      go(Number(slider.value));
    });
    return { button, slider, go, start, stop, bar: el("div.line", button, slider, where) };
  }

  function controls(drawing, ring, fixations) {
    const calm = note("The system asks for reduced motion, so the path stays still; the slider goes through it.");

    function show(number) {
      drawing.classList.toggle("playing", number > 0);
      if (number === 0) return;
      const [x, y] = fixations[number - 1];
      ring.setAttribute("cx", coordinate(x));
      ring.setAttribute("cy", coordinate(y));
    }
    const wording = { pause: EACH, label: "Fixation", all: "the whole path" };
    const { button, go, start, stop, bar } = player(fixations.length, { ...wording, show });
    function consider() {
      if (still.matches) stop();
      button.hidden = still.matches;
      calm.hidden = !still.matches;
    }

    still.addEventListener("change", consider);
    go(0);
    consider();
    if (!still.matches) start();
    return el("figcaption", bar, calm);
  }

  Object.assign(Turinglike, { canvas, fixation, line, player, scanpath, tagged, targetBox });
}
