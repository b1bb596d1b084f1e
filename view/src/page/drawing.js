// Shapes of blocks: memory in rows or in one, bands, and the packed bytes.

/** Room for the offset of a row, with 11 letters: "+1023.9 KiB" is the longest. */
const GUTTER = 82;

/** Draws the frame that is open. */
function drawMap() {
  const frame = map.frames[map.frames.length - 1];
  const { pitches, pitch, ...content } = contentOf(frame);
  const { blocks } = content;
  Object.assign(map, { shown: null, ...content });
  drawWindows(frame, map.shown);
  map.shapes = blocks.map(() => []);
  map.pinned = -1;
  drawPitches(pitches);
  const width = Math.max(byId("map").clientWidth, 300);
  const place = { width, left: GUTTER, strip: width - GUTTER - 4 };
  const drawing = shape("svg", { role: "img" });
  const end = blocks.length ? (pitch ? drawRows(drawing, place, pitch) : drawRow(drawing, place)) : 0;
  const height = drawPacked(drawing, place, end) + 4;
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  byId("map").replaceChildren(drawing);
  byId("map").classList.remove("chosen");
  const threads = map.colours === "threads";
  byId("legend-first").textContent = threads ? "lane 0" : "first packed";
  byId("legend-last").textContent = threads ? "31" : "last";
  drawPath();
  tell(-1);
}

/** The choice of pitches. */
function drawPitches(pitches) {
  const texts = { 0: "all" };
  const option = (value, text) => element("option", { value }, text);
  const text = (pitch) => texts[pitch] || grouped(pitch);
  byId("pitch").replaceChildren(
    option("auto", `${text(pitches[0])} (default)`),
    ...pitches.map((pitch) => option(String(pitch), text(pitch))),
  );
  if (map.pitch !== "auto" && !pitches.includes(Number(map.pitch))) map.pitch = "auto";
  byId("pitch").value = map.pitch;
}

/** The colour of a block. */
function colourOf(block) {
  // Threads are told apart inside of runs alone.
  if (map.colours === "threads") return "#8b949e";
  if (map.blocks.length === 1 || !map.bytes) return colour(0);
  return colour((block.packed - map.begin + block.bytes / 2) / map.bytes);
}

/** A shape of a block, which reacts to a pointer. */
function blockShape(index, kind, ...children) {
  const made = shape("g", { class: "block", "data-block": index, "data-side": kind }, ...children);
  map.shapes[index].push(made);
  return made;
}

const minimumWidth = 1.2;

/** Pixels of a letter inside of a block. */
const LETTER = 6.7;

/** Vertical lines in a strip. */
function cuts(made, places, y, height) {
  if (places.length)
    made.append(shape("path", { class: "cuts", d: places.map((x) => `M${x.toFixed(2)} ${y.toFixed(2)}v${height.toFixed(2)}`).join("") }));
}

/** What is inside of a part of a block: each element with its kind, if there is space, or the block in a word. `packed` is the first of its packed bytes. */
function inside(made, block, { x, y, width, height, packed, bytes }) {
  if (map.colours === "threads" && writeThreads(made, block, { x, y, width, height, packed, bytes })) return;
  if (height < 14) return;
  const write = (text, at, wide) => made.append(shape("text", { class: "label", x: at + wide / 2, y: y + height / 2 + 4 }, text));
  const fits = (text, wide) => text && text.length * LETTER + 6 < wide;
  const elements = block.group || block.runs > 1 ? null : elementsIn(packed, packed + bytes, 400);
  const scale = width / bytes;
  if (elements && elements.length && elements.every(([, size, kind]) => fits(kind, size * scale))) {
    cuts(
      made,
      elements.slice(1).map(([at]) => x + (at - packed) * scale),
      y,
      height,
    );
    for (const [at, size, kind] of elements) write(kind, x + (at - packed) * scale, size * scale);
    return;
  }
  const text = [elementsText(block), `${grouped(block.bytes)} B`].find((text) => fits(text, width));
  if (text) write(text, x, width);
  else if (elements && elements.every(([, size]) => size * scale > 4))
    cuts(
      made,
      elements.slice(1).map(([at]) => x + (at - packed) * scale),
      y,
      height,
    );
}

/** The words of threads inside of a part of a block, in the colours of their lanes; whether there is space for them. */
function writeThreads(made, block, { x, y, width, height, packed, bytes }) {
  const words = block.group || block.runs > 1 ? null : wordsIn(packed, packed + bytes, 256);
  if (!words || width < words.length) return false;
  const scale = width / bytes;
  const labelled = height >= 14 && words.every(([, size, { thread }]) => `T${thread}`.length * LETTER + 4 < size * scale);
  for (const [at, size, { thread }] of words) {
    const [begin, wide] = [x + (at - packed) * scale, Math.max(size * scale, 0.5)];
    made.append(shape("rect", { class: "word", x: begin, y, width: wide, height, fill: colour(((thread % 32) + 0.5) / 32) }));
    if (labelled) made.append(shape("text", { class: "label", x: begin + wide / 2, y: y + height / 2 + 4 }, `T${thread}`));
  }
  if (width > 4 * words.length)
    cuts(
      made,
      words.slice(1).map(([at]) => x + (at - packed) * scale),
      y,
      height,
    );
  return true;
}

/** Memory in rows; returns where it ends. */
function drawRows(drawing, { left, strip }, pitch) {
  const base = Math.floor(map.low / pitch),
    rows = rowsOf(map.low, map.high, pitch);
  const row = Math.min(22, rows > 40 ? Math.max(420 / rows, 0.7) : 560 / rows),
    space = row > 8 ? 2 : 0,
    scale = strip / pitch;
  // Rows of a plane stand together.
  const plane = space ? planeOf(pitch, rows) : 0;
  const top = (at) => 2 + at * row + (plane ? 7 * (Math.floor((base + at) / plane) - Math.floor(base / plane)) : 0);
  if (!space) drawing.append(shape("rect", { class: "gap", x: left, y: 2, width: strip, height: rows * row }));
  const labelled = space ? Math.ceil(15 / row) : Math.ceil(30 / row);
  const long = grouped((base + rows) * pitch).length > 10;
  // Rows that units do not tell apart are counted from the first.
  const alike = long && label(base * pitch, long) === label((base + labelled) * pitch, long);
  const text = (at) => (alike && at > 0 ? `+${label(at * pitch, grouped(rows * pitch).length > 8)}` : label((base + at) * pitch, long));
  for (let at = 0; at < rows; at += 1) {
    if (space) drawing.append(shape("rect", { class: "gap", x: left, y: top(at), width: strip, height: row - space }));
    if (at % labelled === 0) {
      const y = space ? top(at) + (row - space) / 2 + 4 : top(at) + 8;
      drawing.append(shape("text", { class: "end", x: left - 8, y }, text(at)));
    }
  }
  drawGrid(drawing, { left, strip }, pitch, top(rows - 1) + row);
  map.blocks.forEach((block, index) => {
    const made = blockShape(index, "memory");
    let packed = block.packed;
    const parts = wrapped(block, pitch, base);
    const opacity = solid(
      block,
      parts.reduce((sum, part) => sum + part.rows * (part.end - part.begin), 0),
    );
    for (const part of parts) {
      const wide = Math.max((part.end - part.begin) * scale, minimumWidth),
        height = top(part.row + part.rows - 1) + row - space - top(part.row);
      const x = Math.min(left + part.begin * scale, left + strip - wide),
        bytes = part.end - part.begin;
      made.append(
        shape("rect", {
          x,
          y: top(part.row),
          width: wide,
          height,
          fill: colourOf(block),
          "fill-opacity": opacity,
          "shape-rendering": space ? "auto" : "crispEdges",
        }),
      );
      if (part.rows === 1) inside(made, block, { x, y: top(part.row), width: wide, height, packed, bytes });
      packed += bytes * part.rows;
    }
    drawing.append(made);
  });
  return top(rows - 1) + row + 12;
}

/** Rows of a plane: of the next wider stride, if that is a few rows; otherwise 0. */
function planeOf(pitch, rows) {
  const wider = [...view.memory.strides].reverse().find((stride) => stride > pitch && stride % pitch === 0);
  const plane = wider ? wider / pitch : 0;
  return plane > 1 && plane < rows && rows / plane <= 16 ? plane : 0;
}

/** The places of elements in gaps too, where all are of one size: a matrix shows its columns. */
function drawGrid(drawing, { left, strip }, pitch, end) {
  const [only, ...others] = view.memory.elements;
  if (!only || others.length || pitch % only.size || (strip / pitch) * only.size < 6) return;
  let d = "";
  for (let at = only.size; at < pitch; at += only.size) d += `M${(left + (at * strip) / pitch).toFixed(2)} 2v${(end - 2).toFixed(2)}`;
  drawing.append(shape("path", { class: "cuts grid", d }));
}

/** The offset at the begin of a row, short enough for its place. */
function label(offset, long) {
  if (!long || offset === 0) return grouped(offset);
  return (offset < 0 ? "\u2212" : "") + bytesText(Math.abs(offset)).replace(" bytes", " B");
}

/** Memory in one row, and bands to the packed bytes; returns where they end. */
function drawRow(drawing, { left, strip }) {
  const [top, height, bands] = [2, 26, 54];
  const scale = strip / Math.max(map.high - map.low, 1),
    packedScale = strip / Math.max(map.bytes, 1);
  drawing.append(shape("rect", { class: "gap", x: left, y: top, width: strip, height }));
  drawing.append(shape("text", { class: "end", x: left - 8, y: top + 17 }, label(map.low, grouped(map.low).length > 10)));
  map.blocks.forEach((block, index) => {
    const wide = Math.max((block.high - block.low) * scale, minimumWidth),
      x = Math.min(left + (block.low - map.low) * scale, left + strip - wide);
    const begin = left + (block.packed - map.begin) * packedScale,
      end = begin + block.bytes * packedScale;
    const d = `M${x.toFixed(2)} ${top + height}H${(x + wide).toFixed(2)}L${end.toFixed(2)} ${top + height + bands}H${begin.toFixed(2)}Z`;
    const band = shape("path", { class: "band", "data-block": index, d, fill: colourOf(block) });
    map.shapes[index].push(band);
    const made = blockShape(
      index,
      "memory",
      shape("rect", { x, y: top, width: wide, height, fill: colourOf(block), "fill-opacity": solid(block, block.high - block.low) }),
    );
    inside(made, block, { x, y: top, width: wide, height, packed: block.packed, bytes: Math.max(block.high - block.low, 1) });
    drawing.append(band, made);
  });
  return top + height + bands;
}

/** The packed bytes in one row; returns where they end. */
function drawPacked(drawing, { left, strip, width }, top) {
  const height = 26,
    scale = strip / Math.max(map.bytes, 1);
  drawing.append(shape("rect", { class: "gap", x: left, y: top, width: strip, height }));
  drawing.append(shape("text", { class: "end", x: left - 8, y: top + 17 }, "packed"));
  const places = [];
  map.blocks.forEach((block, index) => {
    const wide = Math.max(block.bytes * scale, minimumWidth),
      x = Math.min(left + (block.packed - map.begin) * scale, left + strip - wide);
    const made = blockShape(index, "packed", shape("rect", { x, y: top, width: wide, height, fill: colourOf(block) }));
    inside(made, block, { x, y: top, width: wide, height, packed: block.packed, bytes: Math.max(block.bytes, 1) });
    drawing.append(made);
    if (index && map.blocks.length <= 200 && !map.shown) places.push(left + (block.packed - map.begin) * scale);
  });
  cuts(drawing, places, top, height);
  const y = top + height + 14;
  drawing.append(
    shape("text", { x: left, y }, grouped(map.begin)),
    shape("text", { class: "end", x: width - 4, y }, grouped(map.begin + map.bytes)),
  );
  return y;
}
