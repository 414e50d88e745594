// A scanpath over its picture: numbered fixations on a yellow line, and the ring that judges see, played or by hand.
"use strict";

{
  const { coordinate, count, el, folded, note, pairs, said, svg } = Turinglike;

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
      : svg("rect", { class: "nothing", width: "100%", height: "100%" });
    const drawn = svg(
      "svg",
      { class: "canvas", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      under,
      ...shapes,
    );
    drawn.style.setProperty("--w", `${Math.max(width, height) / 220}px`);
    return drawn;
  }

  /** A path over its picture; with `calm` it stands still until somebody plays it. */
  function scanpath(answer, stimulus, picture, calm = false) {
    const { fixations, frame } = answer;
    const [width, height] = frame;
    const drawn = width > 0 && height > 0 && fixations.length > 0 && !(calm && picture === null);
    const outside = fixations.flatMap(([x, y], at) => (x >= 0 && x < width && y >= 0 && y < height ? [] : [at + 1]));
    return [
      drawn ? play(answer, stimulus, picture, calm) : null,
      drawn && fixations.length > DRAWN
        ? note(`The first ${DRAWN} of ${count(fixations.length, "fixation")} are drawn.`)
        : null,
      outside.length
        ? note(`Outside the frame: ${outside.slice(0, 10).join(", ")}${outside.length > 10 ? ", …" : ""}.`)
        : null,
      pairs(facts(answer)),
      listed(answer),
    ];
  }

  function facts(answer) {
    const rows = [["fixations", answer.fixations.length.toLocaleString("en")]];
    if (answer.stop) rows.push(["stopped because", STOPS[answer.stop] ?? said(answer.stop)]);
    if (typeof answer.found === "boolean") {
      const place = answer.found && answer.found_at !== null ? ` at fixation ${answer.found_at + 1}` : "";
      rows.push(["target", answer.found ? `found${place}` : "not found"]);
    }
    if (answer.window)
      rows.push(["inhibition window", `${coordinate(answer.window)} px (dashed square around the first fixation)`]);
    if (answer.forced_first) rows.push(["first fixation", "forced to where every path starts; it is not a prediction"]);
    if (answer.selection) rows.push(["selection", said(answer.selection)]);
    rows.push(["frame", `${answer.frame[0]} × ${answer.frame[1]} px`]);
    return rows;
  }

  function listed(answer) {
    const rows = answer.fixations.slice(0, LISTED).map(([x, y], at) => {
      const lasts = answer.durations_ms?.[at];
      return el(
        "li",
        null,
        `(${coordinate(x)}, ${coordinate(y)})${lasts === undefined ? "" : `, ${Math.round(lasts)} ms`}`,
      );
    });
    const rest = answer.fixations.length - rows.length;
    return folded(
      "Coordinates, x and y in pixels of the frame",
      el("ol", { class: "points" }, ...rows),
      rest > 0 ? note(`and ${rest.toLocaleString("en")} more`) : null,
    );
  }

  function play(answer, stimulus, picture, calm) {
    const { fixations, frame } = answer;
    const scale = Math.max(...frame);
    const radius = scale / 32;
    const points = fixations.slice(0, DRAWN);
    const shapes = [...targetBox(stimulus, frame, picture)];
    if (answer.window) {
      const [x, y] = points[0].map((value) => coordinate(value - answer.window / 2));
      shapes.push(
        svg("rect", { class: "window", x, y, width: coordinate(answer.window), height: coordinate(answer.window) }),
      );
    }
    const line = points.map((point) => point.map(coordinate).join(",")).join(" ");
    shapes.push(svg("polyline", { class: "under", points: line }), svg("polyline", { class: "path", points: line }));
    points.forEach((point, at) => {
      shapes.push(...fixation(point, at, radius, answer.forced_first));
    });
    const ring = svg("circle", { class: "ring", r: coordinate(radius * 1.7) });
    const drawing = canvas(
      picture,
      frame,
      `Scanpath of ${count(points.length, "fixation")} drawn on the picture`,
      ...shapes,
      ring,
    );
    return el("figure", { class: "path" }, drawing, controls(drawing, ring, fixations, calm));
  }

  function targetBox(stimulus, frame, picture) {
    const box = stimulus.target_box;
    if (!Array.isArray(box) || box.length !== 4 || !box.every(Number.isFinite) || !picture?.width) return [];
    const sx = frame[0] / picture.width; // the box is in pixels of the picture
    const sy = frame[1] / picture.height;
    const [x, y, width, height] = [box[0] * sx, box[1] * sy, box[2] * sx, box[3] * sy].map(coordinate);
    return [svg("rect", { class: "box", x, y, width, height })];
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
      svg("rect", { class: "box", x: left, y: top, width: across, height: down }),
      svg("text", { class: "tag", ...place, "font-size": coordinate(letters) }, text),
    ];
  }

  /** A button and a slider that go through the fixations 1 to `last`, 0 being all of them; `show` draws one. */
  function player(last, { pause: between, label, all, show }) {
    let timer = null;
    const toggle = () => (timer === null ? start() : stop());
    const button = el("button", { type: "button", class: "quiet", click: toggle }, "Play");
    const slider = el("input", { type: "range", min: 0, max: last, value: 0, "aria-label": label });
    const where = el("output", { class: "where" });

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
      if (!slider.isConnected || next > last) {
        stop();
        go(0);
        return;
      }
      go(next);
      timer = setTimeout(step, between);
    }
    function start() {
      button.textContent = "Pause";
      timer = setTimeout(step, 0);
    }
    slider.addEventListener("input", () => {
      stop();
      go(Number(slider.value));
    });
    return { button, slider, go, start, stop, line: el("div", { class: "line" }, button, slider, where) };
  }

  function controls(drawing, ring, fixations, waits) {
    const calm = note("The system asks for reduced motion, so the path stays still; the slider goes through it.");

    function show(number) {
      drawing.classList.toggle("playing", number > 0);
      if (number === 0) return;
      const [x, y] = fixations[number - 1];
      ring.setAttribute("cx", coordinate(x));
      ring.setAttribute("cy", coordinate(y));
    }
    const { button, go, start, stop, line } = player(fixations.length, {
      pause: EACH,
      label: "Fixation",
      all: "the whole path",
      show,
    });
    function consider() {
      if (still.matches) stop();
      button.hidden = still.matches;
      calm.hidden = !still.matches;
    }

    still.addEventListener("change", consider);
    go(0);
    consider();
    if (!still.matches && !waits) start();
    return el("figcaption", null, line, calm);
  }

  Object.assign(Turinglike, { canvas, fixation, player, scanpath, tagged, targetBox });
}
