// Memory and packed bytes: the blocks of one region, wrapped at a pitch, with the packed bytes below them.

/** Blocks that are drawn beside each other; more copies are drawn in groups. */
const MOST_BLOCKS = 128;
/** Runs that are drawn one by one. */
const MOST_RUNS = 1024;
/** Rows of memory that are drawn. */
const MOST_ROWS = 600;
/** Bytes up to which memory is one row. */
const ONE_ROW = 128;

const map = {
  /** The parts that were enlarged, the whole first. */
  frames: [],
  /** Boxes that were computed. */
  boxes: new Map(),
  blocks: [],
  /** The shapes of each block. */
  shapes: [],
  pinned: -1,
  pitch: "auto",
  /** What colours and labels stand for: "order", or "threads" of a GPU that packs. */
  colours: "order",
};

/** Which thread of a GPU packs a byte: words are dealt to the threads of a block in turn. Nothing where a kernel has another order. */
function threadOf(packed) {
  const order = view.gpu && view.gpu.kernels.length ? view.gpu.kernels[0].order : null;
  if (!order) return null;
  const word = Math.floor(packed / order.word);
  const inBlock = word % (order.threads * order.words);
  return { word, size: order.word, thread: inBlock % order.threads, turn: Math.floor(inBlock / order.threads), block: Math.floor(word / (order.threads * order.words)), words: order.words };
}

/** The words of threads in a range of the packed bytes, as [first packed byte, size, thread]; nothing if they are too many. */
function wordsIn(from, to, most) {
  const found = [];
  for (let at = from; at < to;) {
    const thread = threadOf(at);
    if (!thread || found.length > most) return null;
    const end = Math.min((thread.word + 1) * thread.size, to);
    found.push([at, end - at, thread]);
    at = end;
  }
  return found;
}

/** The region of the whole, as a frame: a region, where it is, and which of its copies are drawn. */
function wholeFrame() {
  const root = view.memory.root;
  return { region: root.region, memory: root.memory, packed: root.packed, from: 0, to: null, title: "whole", stride: 0 };
}

/** An entry of a region as a block. */
function blockOf(entry, memory, packed) {
  const at = memory + entry.memory;
  const region = entry.region === undefined ? null : view.memory.regions[entry.region];
  const [low, high] = region ? [at + region.low, at + region.high] : [at, at + entry.bytes];
  return { low, high, packed: packed + entry.packed, bytes: entry.bytes, region: entry.region ?? null, origin: at, runs: region ? region.runs : 1 };
}

/** The runs of a region, one by one. */
function runsOf(number, memory, packed, from, to) {
  const content = view.memory.regions[number].content;
  const below = (entry, at, position) =>
    entry.region === undefined ? [blockOf(entry, at, position)] : runsOf(entry.region, at + entry.memory, position + entry.packed, 0, null);
  if (content.entries) {
    return content.entries.listed.flatMap((entry, index) =>
      below(entry, memory, packed).map((block) => (view.memory.origins[index] && number === view.memory.root.region ? { ...block, origins: view.memory.origins[index] } : block)));
  }
  const { count, stride, first } = content.copies;
  const found = [];
  for (let copy = from; copy < (to ?? count); copy += 1) found.push(...below(first, memory + copy * stride, packed + copy * first.bytes));
  return found;
}

/** Whether all runs of a region are there, few enough to be drawn one by one. */
function isListed(number, copies) {
  const region = view.memory.regions[number];
  const of = (entries) => entries.of === entries.listed.length;
  if (region.content.entries) return of(region.content.entries) && region.runs <= MOST_RUNS;
  const { first } = region.content.copies;
  const runs = first.region === undefined ? 1 : view.memory.regions[first.region].runs;
  return runs * copies <= MOST_RUNS && (first.region === undefined || isListed(first.region, 1));
}

/** The blocks of a frame in packed order, and what they are. Few copies are drawn as what is in them. */
function blocksOf(frame) {
  let found = ownBlocks(frame);
  while (found.blocks.length < MOST_BLOCKS / 2 && found.blocks.some((block) => block.region !== null) && !found.blocks.some((block) => block.group || block.origins)) {
    const inner = found.blocks.map((block) => (block.region === null
      ? { blocks: [block], words: "run" }
      : ownBlocks({ region: block.region, memory: block.origin, packed: block.packed, from: 0, to: null })));
    const blocks = inner.flatMap((each) => each.blocks);
    if (blocks.length > 2 * MOST_BLOCKS) break;
    found = { ...found, blocks, words: inner.every((each) => each.words === inner[0].words) ? inner[0].words : "part" };
  }
  return found;
}

/** The entries of a region, or its copies, as blocks. */
function ownBlocks(frame) {
  const region = view.memory.regions[frame.region];
  if (region.content.entries) {
    const { of, listed } = region.content.entries;
    if (isListed(frame.region, 1)) return { blocks: runsOf(frame.region, frame.memory, frame.packed, 0, null), words: "run" };
    const blocks = listed.map((entry, index) => ({ ...blockOf(entry, frame.memory, frame.packed), number: index }));
    if (frame.region === view.memory.root.region) blocks.forEach((block, index) => { block.origins = view.memory.origins[index]; });
    return { blocks, words: of > listed.length ? "listed place" : listed.some((entry) => entry.region !== undefined) ? "part" : "run" };
  }
  const { count, stride, first } = region.content.copies;
  const [from, to] = [frame.from, frame.to ?? count];
  if (isListed(frame.region, to - from)) return { blocks: runsOf(frame.region, frame.memory, frame.packed, from, to), words: "run", stride };
  const group = Math.ceil((to - from) / MOST_BLOCKS);
  const blocks = [];
  for (let copy = from; copy < to; copy += group) {
    const end = Math.min(copy + group, to);
    const one = blockOf(first, frame.memory + copy * stride, frame.packed + copy * first.bytes);
    if (end - copy === 1) { blocks.push({ ...one, copy }); continue; }
    const last = (end - 1 - copy) * stride;
    blocks.push({
      ...one, low: one.low + Math.min(last, 0), high: one.high + Math.max(last, 0), bytes: (end - copy) * first.bytes,
      runs: one.runs * (end - copy), group: { region: frame.region, from: copy, to: end, one, stride, memory: frame.memory, packed: frame.packed }, copy,
    });
  }
  return { blocks, words: group > 1 ? "group of copies" : "copy", stride };
}

/** Rows of `pitch` bytes that a range of memory is in, counted from offset 0. */
const rowsOf = (low, high, pitch) => Math.floor((high - 1) / pitch) - Math.floor(low / pitch) + 1;

/** Pitches that a range may be wrapped at, with the one that shows its structure best first; 0 is one row. */
function pitchesOf(low, high, stride, number) {
  const span = high - low;
  const own = [...new Set([Math.abs(stride || 0), ...view.memory.strides])].filter((pitch) => pitch > 0).sort((one, other) => one - other);
  const fits = (pitch) => { const rows = rowsOf(low, high, pitch); return rows >= 2 && rows <= MOST_ROWS; };
  let best = span <= ONE_ROW ? 0 : own.find(fits) || 0;
  if (best === 0 && span > ONE_ROW && own.length) {
    best = own[0];
    while (best && rowsOf(low, high, best) > 32) best *= 2;
    if (!fits(best)) best = 0;
  }
  // Many blocks without a stride are more legible in several rows.
  if (best === 0 && number > 96) best = 2 ** Math.ceil(Math.log2(span / 20));
  const all = [best, 0, ...own, 32, 64, 128, 256, 512, 1024, 4096].filter((pitch) => pitch === 0 || fits(pitch));
  return [...new Set(all)];
}

/** An offset as rows and columns of `pitch` bytes, the columns to either side of 0. */
function rowAndColumn(offset, pitch) {
  const row = Math.round(offset / pitch);
  return [row, offset - row * pitch];
}

/** The smallest box around others. */
const around = (boxes) => ({
  top: Math.min(...boxes.map((box) => box.top)), bottom: Math.max(...boxes.map((box) => box.bottom)),
  left: Math.min(...boxes.map((box) => box.left)), right: Math.max(...boxes.map((box) => box.right)),
});

/** A box moved by an offset. */
function movedBox(box, offset, pitch) {
  const [row, column] = rowAndColumn(offset, pitch);
  return { top: box.top + row, bottom: box.bottom + row, left: box.left + column, right: box.right + column };
}

/** The rows and columns that a region takes if it begins at column 0: what is a part of a matrix is a box in it, and no interval. */
function boxOf(number, pitch) {
  const key = `${number} ${pitch}`;
  if (!map.boxes.has(key)) {
    const of = (entry) => movedBox(entry.region === undefined ? { top: 0, bottom: 1, left: 0, right: entry.bytes } : boxOf(entry.region, pitch), entry.memory, pitch);
    const { entries, copies } = view.memory.regions[number].content;
    const boxes = entries ? entries.listed.map(of) : [of(copies.first), movedBox(of(copies.first), (copies.count - 1) * copies.stride, pitch)];
    map.boxes.set(key, around(boxes));
  }
  return map.boxes.get(key);
}

/** The box of a block in rows of `pitch` bytes; nothing if it goes beyond a row. */
function placedBox(block, pitch, base) {
  if (block.region === null) return null;
  const inside = boxOf(block.region, pitch);
  const { group } = block;
  const relative = group ? around([inside, movedBox(inside, (group.to - group.from - 1) * group.stride, pitch)]) : inside;
  const row = Math.floor(block.origin / pitch), column = block.origin - row * pitch;
  const [begin, end] = [column + relative.left, column + relative.right];
  if (begin < 0 || end > pitch) return null;
  return { row: row + relative.top - base, rows: relative.bottom - relative.top, begin, end };
}

/** A block as rectangles in rows of `pitch` bytes: the first row, how many, begin and end in the row. */
function wrapped(block, pitch, base) {
  const box = placedBox(block, pitch, base);
  if (box) return [box];
  const parts = [];
  const [first, last] = [Math.floor(block.low / pitch), Math.floor((block.high - 1) / pitch)];
  const begin = block.low - first * pitch, end = block.high - last * pitch;
  if (first === last) return [{ row: first - base, rows: 1, begin, end }];
  if (begin > 0) parts.push({ row: first - base, rows: 1, begin, end: pitch });
  const inner = begin > 0 ? first + 1 : first, behind = end < pitch ? last : last + 1;
  if (behind > inner) parts.push({ row: inner - base, rows: behind - inner, begin: 0, end: pitch });
  if (end < pitch) parts.push({ row: last - base, rows: 1, begin: 0, end });
  return parts;
}

/** How solid a block looks: as the share of its area that is packed. */
function solid(block, area) {
  const share = block.runs === 1 ? 1 : Math.min(block.bytes / Math.max(area, 1), 1);
  return share > 0.99 ? 1 : 0.45 + 0.5 * share;
}

/** The elements in a range of the packed bytes, as [first packed byte, size, kind], or nothing if they are too many or not known. */
function elementsIn(from, to, most) {
  const found = [];
  const pieces = view.memory.elements;
  const whole = pieces.reduce((sum, piece) => sum + piece.count * piece.size, 0);
  if (!whole) return null;
  const shift = Math.floor(from / whole) * whole;
  for (const piece of pieces) {
    const [begin, end] = pieces.length === 1 ? [0, Infinity] : [piece.packed + shift, piece.packed + shift + piece.count * piece.size];
    let at = begin + Math.max(0, Math.floor((from - begin) / piece.size)) * piece.size;
    for (; at < Math.min(end, to); at += piece.size) {
      if (at >= from) found.push([at, piece.size, piece.kind]);
      if (found.length > most) return null;
    }
  }
  return found;
}

/** The elements of a block in words, such as "3 x f64". */
function elementsText(block) {
  if (block.group || block.region !== null && block.runs > 1) return "";
  const found = elementsIn(block.packed, block.packed + block.bytes, 4096);
  if (!found || !found.length) return "";
  const counts = [];
  for (const [, , kind] of found) {
    if (counts.length && counts[counts.length - 1][0] === kind) counts[counts.length - 1][1] += 1;
    else counts.push([kind, 1]);
  }
  return counts.slice(0, 4).map(([kind, number]) => (number > 1 ? `${number}\u00d7${kind}` : kind)).join(" ") + (counts.length > 4 ? " \u2026" : "");
}

/** The runs of a region in a part of memory. `budget` bounds the copies that are looked at. */
function runsWithin(number, memory, packed, part, found, budget) {
  const region = view.memory.regions[number];
  if (memory + region.low >= part.to || memory + region.high <= part.from || found.length > part.most) return;
  const visit = (entry, shift, position) => {
    budget.left -= 1;
    if (entry.region !== undefined) runsWithin(entry.region, memory + entry.memory + shift, packed + entry.packed + position, part, found, budget);
    else {
      const low = memory + entry.memory + shift;
      if (low < part.to && low + entry.bytes > part.from) found.push(blockOf(entry, memory + shift, packed + position));
    }
  };
  const { entries, copies } = region.content;
  if (entries) { entries.listed.forEach((entry) => visit(entry, 0, 0)); return; }
  const { count, stride, first } = copies;
  const one = blockOf(first, memory, 0);
  // The copies whose bounds meet the part.
  let [begin, end] = [0, count];
  if (stride > 0) [begin, end] = [Math.floor((part.from - one.high) / stride) + 1, Math.ceil((part.to - one.low) / stride)];
  if (stride < 0) [begin, end] = [Math.floor((one.low - part.to) / -stride) + 1, Math.ceil((one.high - part.from) / -stride)];
  for (let copy = Math.max(begin, 0); copy < Math.min(end, count) && budget.left > 0; copy += 1) visit(first, copy * stride, copy * first.bytes);
}

/** Whether blocks are interleaved, so that the area of one would cover those of others. */
function interleave(blocks, pitch) {
  if (blocks.length < 2 || blocks.every((block) => block.runs === 1)) return false;
  const sorted = [...blocks].sort((one, other) => one.low - other.low);
  const overlaps = sorted.some((block, index) => index > 0 && block.low < sorted[index - 1].high);
  if (!overlaps || !pitch) return overlaps;
  const boxes = blocks.map((block) => (block.runs === 1 ? wrapped(block, pitch, 0)[0] : placedBox(block, pitch, 0)));
  if (boxes.some((box) => !box)) return true;
  const meet = (one, other) => one.row < other.row + other.rows && other.row < one.row + one.rows && one.begin < other.end && other.begin < one.end;
  return boxes.some((box, index) => boxes.slice(index + 1).some((other) => meet(box, other)));
}

/** Rows of the window through which interleaved blocks are seen. */
const WINDOW_ROWS = 24;

/** The runs in a window of memory, in rows of a stride in which some runs are beside each other. */
function windowOf(frame, low, high) {
  const parts = (from, to, most) => {
    const found = [];
    runsWithin(frame.region, frame.memory, frame.packed, { from, to, most }, found, { left: 200000 });
    return found;
  };
  const few = parts(low, high, 1);
  const shortest = few.length ? few[0].bytes : 1;
  const own = [...view.memory.strides].filter((stride) => stride >= 3 * shortest).sort((one, other) => one - other);
  const pitch = map.pitch !== "auto" && Number(map.pitch) ? Number(map.pitch) : own[0] || 256;
  const begin = Math.floor(low / pitch) * pitch;
  let rows = WINDOW_ROWS, blocks = [], from = begin;
  for (; rows >= 1; rows = Math.floor(rows / 2)) {
    from = begin + (frame.window || 0) * pitch * rows;
    blocks = parts(from, from + pitch * rows, MOST_RUNS);
    if (blocks.length <= MOST_RUNS || rows === 1) break;
  }
  blocks.sort((one, other) => one.packed - other.packed);
  const size = pitch * rows;
  return { blocks: blocks.slice(0, MOST_RUNS), pitch, from, to: from + size, windows: Math.ceil((high - begin) / size) };
}

/** The choice of a window; nothing where all of a frame is drawn. */
function drawWindows(frame, shown) {
  const go = (by) => () => { frame.window = Math.min(Math.max((frame.window || 0) + by, 0), shown.windows - 1); drawMap(); };
  byId("window").replaceChildren(...(shown ? [
    element("button", { type: "button", id: "window-back", "aria-label": "memory before", onclick: go(-1) }, "\u2039"),
    ` window ${grouped((frame.window || 0) + 1)} of ${grouped(shown.windows)} `,
    element("button", { type: "button", id: "window-on", "aria-label": "memory behind", onclick: go(1) }, "\u203a"),
  ] : []));
}

/** What is drawn of a frame: its blocks and how memory is wrapped, or a window where blocks would cover each other. */
function contentOf(frame) {
  const { blocks, words, stride } = blocksOf(frame);
  if (!blocks.length) return { blocks, words, low: 0, high: 0, begin: 0, bytes: 0, pitches: [0], pitch: 0 };
  const low = Math.min(...blocks.map((block) => block.low)), high = Math.max(...blocks.map((block) => block.high));
  const pitches = pitchesOf(low, high, stride, blocks.length);
  if (interleave(blocks, pitches[0])) {
    const shown = windowOf(frame, low, high);
    const all = [shown.pitch, ...view.memory.strides.filter((pitch) => pitch >= 16 && pitch !== shown.pitch)];
    const { bytes } = view.memory.regions[frame.region];
    return { blocks: shown.blocks, words: "run", low: shown.from, high: shown.to, begin: frame.packed, bytes, pitches: all, pitch: shown.pitch, shown };
  }
  const begin = blocks[0].packed;
  const bytes = blocks.reduce((end, block) => Math.max(end, block.packed + block.bytes), begin) - begin;
  const chosen = Number(map.pitch);
  return { blocks, words, low, high, begin, bytes, pitches, pitch: map.pitch === "auto" || !pitches.includes(chosen) ? pitches[0] : chosen };
}

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
  const left = width < 560 ? 54 : 82;
  const place = { width, left, strip: width - left - 4 };
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
  byId("pitch").replaceChildren(option("auto", `${text(pitches[0])} (default)`), ...pitches.map((pitch) => option(String(pitch), text(pitch))));
  if (map.pitch !== "auto" && !pitches.includes(Number(map.pitch))) map.pitch = "auto";
  byId("pitch").value = map.pitch;
}

/** The colour of a block. */
function colourOf(block) {
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
  if (places.length) made.append(shape("path", { class: "cuts", d: places.map((x) => `M${x.toFixed(2)} ${y.toFixed(2)}v${height.toFixed(2)}`).join("") }));
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
    cuts(made, elements.slice(1).map(([at]) => x + (at - packed) * scale), y, height);
    for (const [at, size, kind] of elements) write(kind, x + (at - packed) * scale, size * scale);
    return;
  }
  const text = [elementsText(block), `${grouped(block.bytes)} B`].find((text) => fits(text, width));
  if (text) write(text, x, width);
  else if (elements && elements.every(([, size]) => size * scale > 4)) cuts(made, elements.slice(1).map(([at]) => x + (at - packed) * scale), y, height);
}

/** The words of threads inside of a part of a block, in the colours of their lanes; whether there is space for them. */
function writeThreads(made, block, { x, y, width, height, packed, bytes }) {
  const words = block.group || block.runs > 1 ? null : wordsIn(packed, packed + bytes, 256);
  if (!words) return false;
  const scale = width / bytes;
  const labelled = height >= 14 && words.every(([, size, { thread }]) => `T${thread}`.length * LETTER + 4 < size * scale);
  for (const [at, size, { thread }] of words) {
    const [begin, wide] = [x + (at - packed) * scale, Math.max(size * scale, 0.5)];
    made.append(shape("rect", { class: "word", x: begin, y, width: wide, height, fill: colour((thread % 32 + 0.5) / 32) }));
    if (labelled) made.append(shape("text", { class: "label", x: begin + wide / 2, y: y + height / 2 + 4 }, `T${thread}`));
  }
  cuts(made, words.slice(1).map(([at]) => x + (at - packed) * scale), y, height);
  return true;
}

/** Memory in rows; returns where it ends. */
function drawRows(drawing, { left, strip, width }, pitch) {
  const base = Math.floor(map.low / pitch), rows = rowsOf(map.low, map.high, pitch);
  const row = Math.min(22, rows > 40 ? Math.max(420 / rows, 0.7) : 560 / rows), space = row > 8 ? 2 : 0, scale = strip / pitch;
  // Rows of a plane stand together.
  const plane = space ? planeOf(pitch, rows) : 0;
  const top = (at) => 2 + at * row + (plane ? 7 * (Math.floor((base + at) / plane) - Math.floor(base / plane)) : 0);
  if (!space) drawing.append(shape("rect", { class: "gap", x: left, y: 2, width: strip, height: rows * row }));
  const labelled = space ? Math.ceil(15 / row) : Math.ceil(30 / row);
  const long = grouped((base + rows) * pitch).length > (width < 560 ? 6 : 10);
  for (let at = 0; at < rows; at += 1) {
    if (space) drawing.append(shape("rect", { class: "gap", x: left, y: top(at), width: strip, height: row - space }));
    if (at % labelled === 0) {
      const y = space ? top(at) + (row - space) / 2 + 4 : top(at) + 8;
      drawing.append(shape("text", { class: "end", x: left - 8, y }, label((base + at) * pitch, long)));
    }
  }
  drawGrid(drawing, { left, strip }, pitch, top(rows - 1) + row);
  map.blocks.forEach((block, index) => {
    const made = blockShape(index, "memory");
    let packed = block.packed;
    // A window cuts the runs at its ends.
    const parts = wrapped(block, pitch, base).filter((part) => part.row >= 0 && part.row < rows);
    const opacity = solid(block, parts.reduce((sum, part) => sum + part.rows * (part.end - part.begin), 0));
    for (const part of parts) {
      const wide = Math.max((part.end - part.begin) * scale, minimumWidth), height = top(part.row + part.rows - 1) + row - space - top(part.row);
      const x = Math.min(left + part.begin * scale, left + strip - wide), bytes = part.end - part.begin;
      made.append(shape("rect", { x, y: top(part.row), width: wide, height, fill: colourOf(block), "fill-opacity": opacity, "shape-rendering": space ? "auto" : "crispEdges" }));
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
  if (!only || others.length || pitch % only.size || strip / pitch * only.size < 6) return;
  let d = "";
  for (let at = only.size; at < pitch; at += only.size) d += `M${(left + at * strip / pitch).toFixed(2)} 2v${(end - 2).toFixed(2)}`;
  drawing.append(shape("path", { class: "cuts grid", d }));
}

/** The offset at the begin of a row, short enough for its place. */
function label(offset, long) {
  if (!long || offset === 0) return grouped(offset);
  return (offset < 0 ? "\u2212" : "") + bytesText(Math.abs(offset)).replace(" bytes", " B");
}

/** Memory in one row, and bands to the packed bytes; returns where they end. */
function drawRow(drawing, { left, strip, width }) {
  const [top, height, bands] = [2, 26, 54];
  const scale = strip / Math.max(map.high - map.low, 1), packedScale = strip / Math.max(map.bytes, 1);
  drawing.append(shape("rect", { class: "gap", x: left, y: top, width: strip, height }));
  drawing.append(shape("text", { class: "end", x: left - 8, y: top + 17 }, label(map.low, grouped(map.low).length > (width < 560 ? 6 : 10))));
  map.blocks.forEach((block, index) => {
    const wide = Math.max((block.high - block.low) * scale, minimumWidth), x = Math.min(left + (block.low - map.low) * scale, left + strip - wide);
    const begin = left + (block.packed - map.begin) * packedScale, end = begin + block.bytes * packedScale;
    const d = `M${x.toFixed(2)} ${top + height}H${(x + wide).toFixed(2)}L${end.toFixed(2)} ${top + height + bands}H${begin.toFixed(2)}Z`;
    const band = shape("path", { class: "band", "data-block": index, d, fill: colourOf(block) });
    map.shapes[index].push(band);
    const made = blockShape(index, "memory", shape("rect", { x, y: top, width: wide, height, fill: colourOf(block), "fill-opacity": solid(block, block.high - block.low) }));
    inside(made, block, { x, y: top, width: wide, height, packed: block.packed, bytes: Math.max(block.high - block.low, 1) });
    drawing.append(band, made);
  });
  return top + height + bands;
}

/** The packed bytes in one row; returns where they end. */
function drawPacked(drawing, { left, strip, width }, top) {
  const height = 26, scale = strip / Math.max(map.bytes, 1);
  drawing.append(shape("rect", { class: "gap", x: left, y: top, width: strip, height }));
  drawing.append(shape("text", { class: "end", x: left - 8, y: top + 17 }, "packed"));
  const places = [];
  map.blocks.forEach((block, index) => {
    const wide = Math.max(block.bytes * scale, minimumWidth), x = Math.min(left + (block.packed - map.begin) * scale, left + strip - wide);
    const made = blockShape(index, "packed", shape("rect", { x, y: top, width: wide, height, fill: colourOf(block) }));
    inside(made, block, { x, y: top, width: wide, height, packed: block.packed, bytes: Math.max(block.bytes, 1) });
    drawing.append(made);
    if (index && map.blocks.length <= 200 && !map.shown) places.push(left + (block.packed - map.begin) * scale);
  });
  cuts(drawing, places, top, height);
  const y = top + height + 14;
  drawing.append(shape("text", { x: left, y }, grouped(map.begin)), shape("text", { class: "end", x: width - 4, y }, grouped(map.begin + map.bytes)));
  return y;
}

/** The way to the part that is drawn. */
function drawPath() {
  const last = map.frames.length - 1;
  const buttons = map.frames.flatMap((frame, index) => [
    ...(index ? [element("span", { "aria-hidden": "true" }, "\u203a")] : []),
    element("button", { type: "button", "aria-current": index === last ? "true" : null, onclick: () => close(index) }, frame.title),
  ]);
  byId("path").replaceChildren(...buttons);
}

/** Goes back to a part above. */
function close(index) {
  if (index >= map.frames.length - 1) return;
  const [closed] = map.frames.slice(index + 1);
  map.frames.length = index + 1;
  map.pitch = "auto";
  drawMap();
  pin(Math.min(closed.opened, map.blocks.length - 1));
}

/** Enlarges a block, if there is more to see in it. */
function enlarge(index) {
  const block = map.blocks[index];
  if (!block || (block.region === null && !block.group)) return;
  const { group } = block;
  const next = group
    ? { region: group.region, memory: group.memory, packed: group.packed, from: group.from, to: group.to, title: `copies ${grouped(group.from)} to ${grouped(group.to - 1)}` }
    : { region: block.region, memory: block.origin, packed: block.packed, from: 0, to: null, title: block.copy === undefined ? `part ${grouped(index)}` : `copy ${grouped(block.copy)}` };
  map.frames.push({ ...next, opened: index });
  map.pitch = "auto";
  drawMap();
}

/** Says of a block where it is, and what it is; of none, what is drawn. */
function tell(index) {
  const info = byId("info");
  const block = map.blocks[index];
  markChips(block);
  if (!block) {
    if (map.shown) {
      info.replaceChildren(element("b", {}, `${grouped(map.blocks.length)} runs`),
        element("span", {}, `in a window of ${bytesText(map.high - map.low)}: copies are interleaved, and are drawn run by run`));
      return;
    }
    const many = `${grouped(map.blocks.length)} ${map.blocks.length === 1 ? map.words : plural(map.words)}`;
    const share = map.high > map.low ? ` of ${bytesText(map.high - map.low)} (${(100 * Math.min(1, map.bytes / (map.high - map.low))).toPrecision(3)} %)` : "";
    info.replaceChildren(element("b", {}, many), element("span", {}, `${bytesText(map.bytes)} packed${share}`),
      element("span", {}, "hover or click: a block and its packed bytes; arrow keys, Enter, Escape"));
    return;
  }
  const field = (name, text) => element("span", {}, `${name} `, element("span", { class: "code" }, text));
  const title = element("b", {}, element("i", { class: "swatch", style: `background:${colourOf(block)}` }), `${map.words} ${grouped(index + 1)} of ${grouped(map.blocks.length)}`);
  const fields = [
    field("memory", `${grouped(block.low)} \u2026 ${grouped(block.high)}`),
    field("packed", `${grouped(block.packed)} \u2026 ${grouped(block.packed + block.bytes)}`),
    field("", bytesText(block.bytes)),
  ];
  const kinds = elementsText(block);
  if (kinds) fields.push(field("elements", kinds));
  if (block.runs > 1) fields.push(field("runs", grouped(block.runs)));
  if (block.runs === 1) {
    const units = (size) => { const [from, to] = [Math.floor(block.low / size), Math.floor((block.high - 1) / size)]; return from === to ? grouped(from) : `${grouped(from)} \u2026 ${grouped(to)}`; };
    fields.push(field("sectors of 32 B", units(32)), field("lines of 64 B", units(64)));
  }
  const [first, last] = [threadOf(block.packed), threadOf(block.packed + block.bytes - 1)];
  if (first && !block.group) {
    const name = ({ block, thread, turn, words }) => `${grouped(block)}.${thread}${words > 1 ? ` word ${turn}` : ""}`;
    fields.push(field("packed by thread", first.word === last.word ? name(first) : `${name(first)} \u2026 ${name(last)}`));
  }
  for (const [table, entry] of block.origins || []) fields.push(field(`table ${table}`, `[${entry}] = ${view.tables[table].entries[entry]}`));
  info.replaceChildren(title, ...fields);
  if (block.group || block.region !== null) info.append(element("button", { type: "button", id: "enlarge", onclick: () => enlarge(index) }, "enlarge"));
}

const plural = (words) => (words === "copy" ? "copies" : words.startsWith("group") ? "groups of copies" : `${words}s`);

/** Marks blocks in memory and among the packed bytes. */
function light(indices) {
  const chosen = new Set(indices);
  byId("map").classList.toggle("chosen", chosen.size > 0);
  map.shapes.forEach((shapes, index) => shapes.forEach((each) => each.classList.toggle("on", chosen.has(index))));
}

/** Marks the block under the pointer, or again the one that was clicked. */
function hover(index) {
  const shown = index >= 0 ? index : map.pinned;
  light(shown >= 0 ? [shown] : []);
  tell(shown);
}

/** Keeps a block marked. */
function pin(index) {
  map.shapes.forEach((shapes, other) => shapes.forEach((each) => each.classList.toggle("pinned", other === index)));
  map.pinned = index;
  hover(-1);
}

/** The next block in packed order, or in the order of memory. */
function step(by, inMemory) {
  if (map.pinned < 0) return by > 0 ? 0 : map.blocks.length - 1;
  if (!inMemory) return Math.min(Math.max(map.pinned + by, 0), map.blocks.length - 1);
  const order = map.blocks.map((_, index) => index).sort((one, other) => map.blocks[one].low - map.blocks[other].low || one - other);
  const at = order.indexOf(map.pinned) + by;
  return order[Math.min(Math.max(at, 0), order.length - 1)];
}

function onKey(event) {
  const keys = {
    ArrowRight: () => pin(step(1, false)), ArrowLeft: () => pin(step(-1, false)), ArrowDown: () => pin(step(1, true)), ArrowUp: () => pin(step(-1, true)),
    Home: () => pin(0), End: () => pin(map.blocks.length - 1), Enter: () => enlarge(map.pinned),
    Escape: () => (map.frames.length > 1 ? close(map.frames.length - 2) : pin(-1)),
  };
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
}

/** The example tables, whose entries mark the blocks that they lead to. */
function drawTables() {
  view.tables.forEach((table, number) => {
    const leads = (entry) => map.blocks.map((block, index) => [block, index])
      .filter(([block]) => (block.origins || []).some(([of, at]) => of === number && at === entry)).map(([, index]) => index);
    const chip = (value, entry) => element("button", {
      type: "button", class: value < 0 || (value === 0 && table.facts.includes("addresses")) ? "chip skipped" : "chip", "data-table": number, "data-entry": entry,
      onmouseenter: () => light(leads(entry)), onmouseleave: () => hover(-1),
      onclick: () => { const [first] = leads(entry); pin(first ?? -1); light(leads(entry)); },
    }, element("small", {}, `[${entry}]`), element("span", {}, grouped(value)));
    byId("tables").append(element("div", { class: "table" }, element("h3", {}, `example of table ${number}: ${table.facts}`),
      element("div", { class: "chips" }, ...table.entries.map(chip))));
  });
}

/** Marks the entries of tables that led to a block. */
function markChips(block) {
  for (const chip of document.querySelectorAll(".chip")) {
    const is = ([table, entry]) => table === Number(chip.dataset.table) && entry === Number(chip.dataset.entry);
    chip.classList.toggle("on", Boolean(block && (block.origins || []).some(is)));
  }
}

/** Draws the same frame in another manner. */
function redraw() {
  const kept = map.pinned;
  drawMap();
  if (kept >= 0) pin(kept);
}

function startMap() {
  byId("gradient").style.background = `linear-gradient(90deg, ${Array.from({ length: 11 }, (_, stop) => colour(stop / 10)).join(", ")})`;
  drawTables();
  map.frames = view.memory.root.region === undefined ? [] : [wholeFrame()];
  const area = byId("map");
  const indexOf = (event) => { const found = event.target.closest("[data-block]"); return found ? Number(found.dataset.block) : -1; };
  area.addEventListener("pointerover", (event) => hover(indexOf(event)));
  area.addEventListener("pointerleave", () => hover(-1));
  area.addEventListener("click", (event) => { const index = indexOf(event); pin(index === map.pinned ? -1 : index); });
  area.addEventListener("dblclick", (event) => enlarge(indexOf(event)));
  area.addEventListener("keydown", onKey);
  if (threadOf(0)) {
    byId("colours").addEventListener("change", () => { map.colours = byId("colours").value; redraw(); });
  } else byId("colours").parentElement.remove();
  byId("pitch").addEventListener("change", () => { map.pitch = byId("pitch").value; redraw(); });
  drawMap();
  let width = area.clientWidth;
  new ResizeObserver(() => {
    if (area.clientWidth === width) return;
    width = area.clientWidth;
    redraw();
  }).observe(area);
}
startMap();
