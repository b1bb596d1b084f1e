// Blocks of memory: what is drawn of a frame, and where it is in rows of a pitch.

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
  return {
    word,
    size: order.word,
    thread: inBlock % order.threads,
    turn: Math.floor(inBlock / order.threads),
    block: Math.floor(word / (order.threads * order.words)),
    words: order.words,
  };
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
  return {
    low,
    high,
    packed: packed + entry.packed,
    bytes: entry.bytes,
    region: entry.region ?? null,
    origin: at,
    runs: region ? region.runs : 1,
  };
}

/** The runs of a region, one by one. */
function runsOf(number, memory, packed, from, to) {
  const content = view.memory.regions[number].content;
  const below = (entry, at, position) =>
    entry.region === undefined ? [blockOf(entry, at, position)] : runsOf(entry.region, at + entry.memory, position + entry.packed, 0, null);
  if (content.entries) {
    return content.entries.listed.flatMap((entry, index) =>
      below(entry, memory, packed).map((block) =>
        view.memory.origins[index] && number === view.memory.root.region ? { ...block, origins: view.memory.origins[index] } : block,
      ),
    );
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
  while (
    found.blocks.length < MOST_BLOCKS / 2 &&
    found.blocks.some((block) => block.region !== null) &&
    !found.blocks.some((block) => block.group || block.origins)
  ) {
    const inner = found.blocks.map((block) =>
      block.region === null
        ? { blocks: [block], words: "run" }
        : ownBlocks({ region: block.region, memory: block.origin, packed: block.packed, from: 0, to: null }),
    );
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
    if (frame.region === view.memory.root.region)
      blocks.forEach((block, index) => {
        block.origins = view.memory.origins[index];
      });
    return { blocks, words: of > listed.length ? "listed place" : listed.some((entry) => entry.region !== undefined) ? "part" : "run" };
  }
  const { count, stride, first } = region.content.copies;
  const [from, to] = [frame.from, frame.to ?? count];
  if (isListed(frame.region, to - from))
    return { blocks: runsOf(frame.region, frame.memory, frame.packed, from, to), words: "run", stride };
  const group = Math.ceil((to - from) / MOST_BLOCKS);
  const blocks = [];
  for (let copy = from; copy < to; copy += group) {
    const end = Math.min(copy + group, to);
    const one = blockOf(first, frame.memory + copy * stride, frame.packed + copy * first.bytes);
    if (end - copy === 1) {
      blocks.push({ ...one, copy });
      continue;
    }
    const last = (end - 1 - copy) * stride;
    blocks.push({
      ...one,
      low: one.low + Math.min(last, 0),
      high: one.high + Math.max(last, 0),
      bytes: (end - copy) * first.bytes,
      runs: one.runs * (end - copy),
      group: { region: frame.region, from: copy, to: end, one, stride, memory: frame.memory, packed: frame.packed },
      copy,
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
  const fits = (pitch) => {
    const rows = rowsOf(low, high, pitch);
    return rows >= 2 && rows <= MOST_ROWS;
  };
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
  top: Math.min(...boxes.map((box) => box.top)),
  bottom: Math.max(...boxes.map((box) => box.bottom)),
  left: Math.min(...boxes.map((box) => box.left)),
  right: Math.max(...boxes.map((box) => box.right)),
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
    const of = (entry) =>
      movedBox(
        entry.region === undefined ? { top: 0, bottom: 1, left: 0, right: entry.bytes } : boxOf(entry.region, pitch),
        entry.memory,
        pitch,
      );
    const { entries, copies } = view.memory.regions[number].content;
    const boxes = entries
      ? entries.listed.map(of)
      : [of(copies.first), movedBox(of(copies.first), (copies.count - 1) * copies.stride, pitch)];
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
  const row = Math.floor(block.origin / pitch),
    column = block.origin - row * pitch;
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
  const begin = block.low - first * pitch,
    end = block.high - last * pitch;
  if (first === last) return [{ row: first - base, rows: 1, begin, end }];
  if (begin > 0) parts.push({ row: first - base, rows: 1, begin, end: pitch });
  const inner = begin > 0 ? first + 1 : first,
    behind = end < pitch ? last : last + 1;
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
  if (block.group || (block.region !== null && block.runs > 1)) return "";
  const found = elementsIn(block.packed, block.packed + block.bytes, 4096);
  if (!found || !found.length) return "";
  const counts = [];
  for (const [, , kind] of found) {
    if (counts.length && counts[counts.length - 1][0] === kind) counts[counts.length - 1][1] += 1;
    else counts.push([kind, 1]);
  }
  return (
    counts
      .slice(0, 4)
      .map(([kind, number]) => (number > 1 ? `${number}\u00d7${kind}` : kind))
      .join(" ") + (counts.length > 4 ? " \u2026" : "")
  );
}

/** The runs of a region in a part of memory. `budget` bounds the copies that are looked at. */
function runsWithin(number, memory, packed, part, found, budget) {
  const region = view.memory.regions[number];
  if (memory + region.low >= part.to || memory + region.high <= part.from || found.length > part.most) return;
  const visit = (entry, shift, position) => {
    budget.left -= 1;
    if (entry.region !== undefined)
      runsWithin(entry.region, memory + entry.memory + shift, packed + entry.packed + position, part, found, budget);
    else {
      const low = memory + entry.memory + shift;
      if (low < part.to && low + entry.bytes > part.from) found.push(blockOf(entry, memory + shift, packed + position));
    }
  };
  const { entries, copies } = region.content;
  if (entries) {
    entries.listed.forEach((entry) => visit(entry, 0, 0));
    return;
  }
  const { count, stride, first } = copies;
  const one = blockOf(first, memory, 0);
  // The copies whose bounds meet the part.
  let [begin, end] = [0, count];
  if (stride > 0) [begin, end] = [Math.floor((part.from - one.high) / stride) + 1, Math.ceil((part.to - one.low) / stride)];
  if (stride < 0) [begin, end] = [Math.floor((one.low - part.to) / -stride) + 1, Math.ceil((one.high - part.from) / -stride)];
  for (let copy = Math.max(begin, 0); copy < Math.min(end, count) && budget.left > 0; copy += 1)
    visit(first, copy * stride, copy * first.bytes);
}

/** Whether blocks are interleaved, so that the area of one would cover those of others. */
function interleave(blocks, pitch) {
  if (blocks.length < 2 || blocks.every((block) => block.runs === 1)) return false;
  const sorted = [...blocks].sort((one, other) => one.low - other.low);
  const overlaps = sorted.some((block, index) => index > 0 && block.low < sorted[index - 1].high);
  if (!overlaps || !pitch) return overlaps;
  const boxes = blocks.map((block) => (block.runs === 1 ? wrapped(block, pitch, 0)[0] : placedBox(block, pitch, 0)));
  if (boxes.some((box) => !box)) return true;
  const meet = (one, other) =>
    one.row < other.row + other.rows && other.row < one.row + one.rows && one.begin < other.end && other.begin < one.end;
  return boxes.some((box, index) => boxes.slice(index + 1).some((other) => meet(box, other)));
}

/** Rows of the window through which interleaved blocks are seen. */
const WINDOW_ROWS = 24;

/** The runs in a window of memory, in rows of a stride in which some runs are beside each other. */
function windowOf(frame, low, high, preferred) {
  const parts = (from, to, most) => {
    const found = [];
    runsWithin(frame.region, frame.memory, frame.packed, { from, to, most }, found, { left: 200000 });
    return found;
  };
  const few = parts(low, high, 1);
  const shortest = few.length ? few[0].bytes : 1;
  const own = [...view.memory.strides].filter((stride) => stride >= 3 * shortest).sort((one, other) => one - other);
  const pitch = map.pitch !== "auto" && Number(map.pitch) ? Number(map.pitch) : preferred || own[0] || 256;
  const begin = Math.floor(low / pitch) * pitch;
  let rows = WINDOW_ROWS,
    blocks = [],
    from = begin;
  for (; rows >= 1; rows = Math.floor(rows / 2)) {
    from = begin + (frame.window || 0) * pitch * rows;
    blocks = parts(from, from + pitch * rows, MOST_RUNS);
    if (blocks.length <= MOST_RUNS || rows === 1) break;
  }
  // Runs that go beyond the window are cut.
  const cut = (block) => {
    const [begin, end] = [Math.max(block.low, from), Math.min(block.high, from + pitch * rows)];
    return { ...block, low: begin, high: end, packed: block.packed + begin - block.low, bytes: end - begin };
  };
  blocks = blocks.map(cut).sort((one, other) => one.packed - other.packed);
  const size = pitch * rows;
  return { blocks: blocks.slice(0, MOST_RUNS), pitch, from, to: from + size, windows: Math.ceil((high - begin) / size) };
}

/** Rows up to which memory between the bounds of a type is drawn, and not only between its bytes. */
const BOUND_ROWS = 32;

/** A range of memory with the bounds of the type around it, where this is a few rows: a part of a matrix has the matrix around it. */
function withBounds(low, high, pitch) {
  const [lb, ub] = [Math.min(low, view.memory.bounds[0]), Math.max(high, view.memory.bounds[1])];
  return pitch && rowsOf(lb, ub, pitch) <= BOUND_ROWS ? [lb, ub] : [low, high];
}

/** Words that are drawn thread by thread. */
const MOST_WORDS = 8192;

/** Whether blocks are runs of more words of threads than are drawn, where threads are. */
function hasManyWords(blocks) {
  if (map.colours !== "threads" || blocks.some((block) => block.runs > 1)) return false;
  return blocks.reduce((sum, block) => sum + block.bytes, 0) / threadOf(0).size > MOST_WORDS;
}

/** What is drawn of a frame: its blocks and how memory is wrapped, or a window where blocks would cover each other. */
function contentOf(frame) {
  const { blocks, words, stride } = blocksOf(frame);
  if (!blocks.length) return { blocks, words, low: 0, high: 0, begin: 0, bytes: 0, pitches: [0], pitch: 0 };
  let low = Math.min(...blocks.map((block) => block.low)),
    high = Math.max(...blocks.map((block) => block.high));
  const pitches = pitchesOf(low, high, stride, blocks.length);
  const interleaved = interleave(blocks, pitches[0]);
  if (interleaved || hasManyWords(blocks)) {
    const shown = windowOf(frame, low, high, interleaved ? 0 : pitches[0]);
    const all = [shown.pitch, ...view.memory.strides.filter((pitch) => pitch >= 16 && pitch !== shown.pitch)];
    const { bytes } = view.memory.regions[frame.region];
    const why = interleaved ? "copies are interleaved, and are drawn run by run" : "threads are drawn word by word";
    const content = { blocks: shown.blocks, words: "run", low: shown.from, high: shown.to, begin: frame.packed, bytes };
    return { ...content, pitches: all, pitch: shown.pitch, shown: { ...shown, why } };
  }
  if (map.frames.length === 1) [low, high] = withBounds(low, high, pitches[0]);
  const begin = blocks[0].packed;
  const bytes = blocks.reduce((end, block) => Math.max(end, block.packed + block.bytes), begin) - begin;
  const chosen = Number(map.pitch);
  return {
    blocks,
    words,
    low,
    high,
    begin,
    bytes,
    pitches,
    pitch: map.pitch === "auto" || !pitches.includes(chosen) ? pitches[0] : chosen,
  };
}
