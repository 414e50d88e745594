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
  const FITS = {
    bars: "in the middle, with bars on two sides",
    stretch: "stretched to its sides",
  };
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  /** Whether two aspect ratios differ by at most 1 %. */
  function haveOneShape([width, height], [other, high]) {
    const [less, more] = [width * high, height * other].toSorted((left, right) => left - right);
    return 100 * more <= 101 * less;
  }

  /** Points of an answer's frame in pixels of its picture of `size` = [width, height]: the picture stood in the frame's
   * middle with bars on two sides, or else each of its sides was scaled on its own (agents/frames.py). */
  function toPicture(points, { frame, fit }, size) {
    const [across, down] = [size[0] / frame[0], size[1] / frame[1]];
    if (fit !== "bars") return points.map(([x, y]) => [x * across, y * down]);
    const scale = Math.max(across, down);
    const place = (value, axis) => (value - frame[axis] / 2) * scale + size[axis] / 2;
    return points.map(([x, y]) => [place(x, 0), place(y, 1)]);
  }

  /** `shapes` over the picture, which fills `frame` = [width, height] pixels: stretched, or in its middle by `bars`. */
  function canvas(picture, [width, height], label, { fit = "stretch" }, ...shapes) {
    const nothing = svg("rect.nothing", { width: "100%", height: "100%" });
    const kept = fit === "bars" ? "xMidYMid meet" : "none";
    const image = picture?.url && svg("image", { href: picture.url, width, height, preserveAspectRatio: kept });
    const under = image ? [fit === "bars" && nothing, image] : nothing;
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
    const { fixations, frame, fit } = answer;
    const [width, height] = frame;
    const size = picture?.width ? [picture.width, picture.height] : null;
    const drawn = width > 0 && height > 0 && fixations.length > 0 && picture !== null;
    const isInside = ([x, y], [across, down]) => x >= 0 && x < across && y >= 0 && y < down;
    const numbers = fixations.map((_, at) => at + 1);
    const outside = numbers.filter((number) => !isInside(fixations[number - 1], frame));
    const placed = fit === "bars" && size ? toPicture(fixations, answer, size) : null;
    const onBars = placed ? numbers.filter((at) => !outside.includes(at) && !isInside(placed[at - 1], size)) : [];
    const list = (several) => `${several.slice(0, 10).join(", ")}${several.length > 10 ? ", …" : ""}`;
    const isUnsaid = drawn && size !== null && !fit && !haveOneShape(frame, size);
    return [
      drawn && play(answer, stimulus, picture),
      drawn &&
        fixations.length > DRAWN &&
        note(`The first ${DRAWN} of ${count(fixations.length, "fixation")} are drawn.`),
      outside.length > 0 && note(`Outside the frame: ${list(outside)}.`),
      onBars.length > 0 && note(`On the bars beside the picture: ${list(onBars)}.`),
      isUnsaid && note("Frame and picture differ in shape. Drawn as if stretched; the answer does not say so."),
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
    if (Object.hasOwn(FITS, answer.fit)) rows.push(["picture in the frame", FITS[answer.fit]]);
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
      { fit: answer.fit },
      targetBox(stimulus, frame, picture, answer.fit),
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

  function targetBox(stimulus, frame, picture, fit = "stretch") {
    const box = stimulus.target_box;
    if (!Array.isArray(box) || box.length !== 4 || !box.every(Number.isFinite) || !picture?.width) return [];
    const [across, down] = [frame[0] / picture.width, frame[1] / picture.height]; // the box is in pixels of the picture
    const kept = Math.min(across, down);
    const [sx, sy] = fit === "bars" ? [kept, kept] : [across, down];
    const [left, top] = [(frame[0] - picture.width * sx) / 2, (frame[1] - picture.height * sy) / 2];
    const places = [left + box[0] * sx, top + box[1] * sy, box[2] * sx, box[3] * sy];
    const [x, y, width, height] = places.map(coordinate);
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

  Object.assign(Turinglike, {
    canvas,
    fixation,
    haveOneShape,
    line,
    player,
    scanpath,
    tagged,
    targetBox,
    toPicture,
  });
}
