// Answers to one picture on top of each other: scanpaths with a scrubber and a density map, boxes of detectors.
"use strict";

{
  const { coordinate, count, el, note, quiet, quote, small, svg } = Turinglike;
  const { canvas, fixation, haveOneShape, line, player, swatch, tagged, targetBox, toPicture } = Turinglike;
  // Okabe and Ito's colours, which the colour-blind tell apart; people are drawn in their own.
  const COLOURS = ["#ffd400", "#56b4e9", "#e69f00", "#00c08b", "#ff7eb6", "#d55e00", "#b39ddb", "#8bc34a"];
  const PEOPLE = "#ffffff";
  const MACHINES = 3; // layers that are shown at first
  const PERSONS = 1;
  const SPREAD = 43 / 1280; // of the frame's width, a degree in the papers' experiment: the density's kernel
  const GRID = 96; // cells of the density map across

  /** `layers`: {label, kind, sample, colour, answer}. The figure of scanpaths, or null if none can be drawn. */
  function paths(layers, stimulus, picture) {
    const there = layers.filter(({ answer }) => answer.fixations.length && answer.frame[0] > 0 && answer.frame[1] > 0);
    if (!there.length) return null;
    const size = picture?.width ? [picture.width, picture.height] : null;
    const first = there[0].answer;
    const drawn = size ? there : there.filter(({ answer }) => areAlike(answer, first));
    const frame = size ?? first.frame;
    const scale = Math.max(...frame);
    for (const layer of drawn) {
      // Without the picture all have the frame of the first, whatever stood in it.
      layer.points = toPicture(layer.answer.fixations, size ? layer.answer : { frame: layer.answer.frame }, frame);
      Object.assign(layer, pathShapes(layer, scale / 62));
    }
    const longest = Math.max(...drawn.map(({ points }) => points.length));
    const [width, height] = frame;
    const density = svg("image.density", { width, height, preserveAspectRatio: "none", visibility: "hidden" });
    const label = `${count(drawn.length, "scanpath")} over the picture`;
    const groups = drawn.map(({ group }) => group);
    const drawing = canvas(picture, frame, label, {}, targetBox(stimulus, frame, picture), density, groups);
    const densities = el("input", { type: "checkbox" });
    const lines = el("input", { type: "checkbox", checked: true });
    function show(upTo) {
      const seen = drawn.filter(({ box }) => box.checked);
      for (const layer of drawn) showPath(layer, layer.box.checked && lines.checked, upTo);
      density.setAttribute("visibility", densities.checked && seen.length ? "visible" : "hidden");
      if (densities.checked && seen.length) {
        const fixations = seen.flatMap(({ points }) => points.slice(0, upTo === 0 ? points.length : upTo));
        density.setAttribute("href", densityMap(fixations, frame));
      }
    }
    const { go, slider, bar } = player(longest, { pause: 500, label: "Up to fixation", all: "whole paths", show });
    const redraw = () => show(Number(slider.value));
    for (const box of [densities, lines]) box.addEventListener("change", redraw);
    const layered = legend(drawn, redraw); // which makes the boxes to tick
    go(0);
    const ticks = el("div.line", choice(lines, "paths"), choice(densities, "density of the fixations shown"));
    const colours = "Each path in its own colour, people's in white;";
    const about = note(colours, " a density's kernel is a degree of the papers' experiment.");
    const others = there.length - drawn.length;
    const left = others > 0 && note(`Not drawn for want of the picture: ${count(others, "path")} of another frame.`);
    return overlay(drawing, bar, ticks, layered, about, left);
  }

  /** Whether two answers to a picture that is not known have frames that differ in size alone. */
  const areAlike = (answer, other) =>
    (answer.fit === "bars") === (other.fit === "bars") && haveOneShape(answer.frame, other.frame);

  const overlay = (drawing, ...caption) =>
    el("figure.overlay", { "aria-label": "Answers over the picture" }, drawing, el("figcaption", caption));
  const choice = (box, ...text) => el("label.choice", box, " ", text);

  function pathShapes({ points, colour, answer }, radius) {
    const lines = [svg("polyline.under"), svg("polyline.path")];
    const marks = points.map((point, at) => svg("g", fixation(point, at, radius, answer.forced_first)));
    return { group: coloured(colour, lines, marks), lines, marks, radius };
  }

  function coloured(colour, ...shapes) {
    const group = svg("g.layer", shapes);
    group.style.setProperty("--layer", colour);
    return group;
  }

  /** The path up to a fixation (0: all of it), the fixation itself larger than the others. */
  function showPath({ group, lines, marks, points, radius }, visible, upTo) {
    group.setAttribute("visibility", visible ? "visible" : "hidden");
    if (!visible) return;
    const seen = upTo === 0 ? points : points.slice(0, upTo);
    for (const drawn of lines) drawn.setAttribute("points", line(seen));
    marks.forEach((mark, at) => {
      mark.setAttribute("display", at < seen.length ? "inline" : "none");
      mark.firstChild.setAttribute("r", coordinate(at === upTo - 1 ? radius * 1.8 : radius));
    });
  }

  /** A URL of a picture: Gaussians around the fixations, added up, from clear to red. */
  function densityMap(fixations, [width, height]) {
    const [across, down] = [GRID, Math.max(1, Math.round((GRID * height) / width))];
    const spread = SPREAD * GRID;
    const sums = new Float64Array(across * down);
    for (const [x, y] of fixations) {
      const [column, row] = [(x / width) * across, (y / height) * down];
      for (let at = 0; at < sums.length; at += 1) {
        const far = ((at % across) + 0.5 - column) ** 2 + (Math.floor(at / across) + 0.5 - row) ** 2;
        if (far < 16 * spread ** 2) sums[at] += Math.exp(-far / (2 * spread ** 2));
      }
    }
    const most = sums.reduce((left, right) => Math.max(left, right), 1e-9);
    const sheet = el("canvas", { width: across, height: down });
    const context = sheet.getContext("2d");
    const pixels = context.createImageData(across, down);
    sums.forEach((sum, at) => {
      const share = sum / most;
      const hue = [Math.min(255, 510 * share), Math.min(255, 510 * (1 - share)), Math.max(0, 255 - 510 * share)];
      pixels.data.set([...hue, 190 * Math.min(1, share * 1.6)], at * 4);
    });
    context.putImageData(pixels, 0, 0);
    return sheet.toDataURL();
  }

  /** Boxes of several agents over one picture. */
  function boxes(layers, stimulus, picture) {
    const drawn = layers.filter(({ answer }) => answer.boxes?.length);
    if (!drawn.length || !picture?.width) return null;
    const frame = [picture.width, picture.height];
    const letters = Math.max(...frame) / 32;
    drawn.forEach((layer, nth) => {
      const tag = (box, at) => tagged(box, layer.answer.labels[at] ?? "", letters, 1 + (nth % 3));
      layer.group = coloured(layer.colour, layer.answer.boxes.slice(0, 100).map(tag));
    });
    const groups = drawn.map(({ group }) => group);
    const label = `Boxes of ${count(drawn.length, "answer")} over the picture`;
    const drawing = canvas(picture, frame, label, {}, groups);
    const show = () =>
      drawn.forEach(({ group, box }) => group.setAttribute("visibility", box.checked ? "visible" : "hidden"));
    const caption = legend(drawn, show); // which makes the boxes to tick
    show();
    return overlay(drawing, caption);
  }

  /** A box to tick for each layer, in its colour; those of some are ticked at first, of as many agents as can be. */
  function legend(layers, show) {
    const isHuman = ({ kind }) => kind === "human";
    const isMachine = (layer) => !isHuman(layer);
    const people = layers.filter(isHuman);
    const machines = layers.filter(isMachine).toSorted((layer, other) => layer.sample - other.sample);
    const ticked = [...machines.slice(0, MACHINES), ...people.slice(0, PERSONS)];
    const rows = layers.map((layer) => {
      layer.box = el("input", { type: "checkbox", checked: ticked.includes(layer), change: show });
      return el("li", choice(layer.box, swatch(layer.colour), quote(layer.label)));
    });
    const tick = (text, which) =>
      quiet(text, () => {
        for (const layer of layers) layer.box.checked = which(layer);
        show();
      });
    const buttons = [tick("all", () => true), tick("none", () => false)];
    if (people.length && machines.length) buttons.push(tick("machines", isMachine), tick("people", isHuman));
    return [el("ul.legend.layers", rows), layers.length > 1 && el("div.line", small("Show "), buttons)];
  }

  /** The colour of the layer of a number, or of a person's. */
  const colourOf = (number, kind) => (kind === "human" ? PEOPLE : COLOURS[number % COLOURS.length]);

  Object.assign(Turinglike, { boxes, colourOf, paths });
}
