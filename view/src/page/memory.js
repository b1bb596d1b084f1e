// What a reader does with memory and packed bytes: marks, enlarges, moves through them.

/** The choice of a window; nothing where all of a frame is drawn. */
function drawWindows(frame, shown) {
  const go = (by) => () => {
    frame.window = Math.min(Math.max((frame.window || 0) + by, 0), shown.windows - 1);
    drawMap();
  };
  byId("window").replaceChildren(
    ...(shown
      ? [
          element("button", { type: "button", id: "window-back", "aria-label": "memory before", onclick: go(-1) }, "\u2039"),
          ` window ${grouped((frame.window || 0) + 1)} of ${grouped(shown.windows)} `,
          element("button", { type: "button", id: "window-on", "aria-label": "memory behind", onclick: go(1) }, "\u203a"),
        ]
      : []),
  );
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
    ? {
        region: group.region,
        memory: group.memory,
        packed: group.packed,
        from: group.from,
        to: group.to,
        title: `copies ${grouped(group.from)} to ${grouped(group.to - 1)}`,
      }
    : {
        region: block.region,
        memory: block.origin,
        packed: block.packed,
        from: 0,
        to: null,
        title: block.copy === undefined ? `part ${grouped(index)}` : `copy ${grouped(block.copy)}`,
      };
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
      info.replaceChildren(
        element("b", {}, `${grouped(map.blocks.length)} runs`),
        element("span", {}, `in a window of ${bytesText(map.high - map.low)}: ${map.shown.why}`),
      );
      return;
    }
    const many = `${grouped(map.blocks.length)} ${map.blocks.length === 1 ? map.words : plural(map.words)}`;
    const share =
      map.high > map.low
        ? ` of ${bytesText(map.high - map.low)} (${(100 * Math.min(1, map.bytes / (map.high - map.low))).toPrecision(3)} %)`
        : "";
    info.replaceChildren(
      element("b", {}, many),
      element("span", {}, `${bytesText(map.bytes)} packed${share}`),
      element("span", { class: "hint" }, "hover or click: a block and its packed bytes; arrow keys, Enter, Escape"),
    );
    return;
  }
  const field = (name, text) => element("span", {}, `${name} `, element("span", { class: "code" }, text));
  const title = element(
    "b",
    {},
    element("i", { class: "swatch", style: `background:${colourOf(block)}` }),
    `${map.words} ${grouped(index + 1)} of ${grouped(map.blocks.length)}`,
  );
  const fields = [
    field("memory", `${grouped(block.low)} \u2026 ${grouped(block.high)}`),
    field("packed", `${grouped(block.packed)} \u2026 ${grouped(block.packed + block.bytes)}`),
    field("", bytesText(block.bytes)),
  ];
  const kinds = elementsText(block);
  if (kinds) fields.push(field("elements", kinds));
  if (block.runs > 1) fields.push(field("runs", grouped(block.runs)));
  if (block.runs === 1) {
    const units = (size) => {
      const [from, to] = [Math.floor(block.low / size), Math.floor((block.high - 1) / size)];
      return from === to ? grouped(from) : `${grouped(from)} \u2026 ${grouped(to)}`;
    };
    fields.push(field("sectors of 32 B", units(32)), field("lines of 64 B", units(64)));
  }
  const [first, last] = [threadOf(block.packed), threadOf(block.packed + block.bytes - 1)];
  if (first && !block.group) {
    const name = ({ block, thread, turn, words }) => `${grouped(block)}.${thread}${words > 1 ? ` word ${turn}` : ""}`;
    fields.push(field("packed by thread", first.word === last.word ? name(first) : `${name(first)} \u2026 ${name(last)}`));
  }
  for (const [table, entry] of block.origins || [])
    fields.push(field(`table ${table}`, `[${entry}] = ${view.tables[table].entries[entry]}`));
  info.replaceChildren(title, ...fields);
  if (block.group || block.region !== null)
    info.append(element("button", { type: "button", id: "enlarge", onclick: () => enlarge(index) }, "enlarge"));
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
    ArrowRight: () => pin(step(1, false)),
    ArrowLeft: () => pin(step(-1, false)),
    ArrowDown: () => pin(step(1, true)),
    ArrowUp: () => pin(step(-1, true)),
    Home: () => pin(0),
    End: () => pin(map.blocks.length - 1),
    Enter: () => enlarge(map.pinned),
    Escape: () => (map.frames.length > 1 ? close(map.frames.length - 2) : pin(-1)),
  };
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
}

/** The example tables, whose entries mark the blocks that they lead to. */
function drawTables() {
  view.tables.forEach((table, number) => {
    const leads = (entry) =>
      map.blocks
        .map((block, index) => [block, index])
        .filter(([block]) => (block.origins || []).some(([of, at]) => of === number && at === entry))
        .map(([, index]) => index);
    const chip = (value, entry) =>
      element(
        "button",
        {
          type: "button",
          class: value < 0 || (value === 0 && table.facts.includes("addresses")) ? "chip skipped" : "chip",
          "data-table": number,
          "data-entry": entry,
          onmouseenter: () => light(leads(entry)),
          onmouseleave: () => hover(-1),
          onclick: () => {
            const [first] = leads(entry);
            pin(first ?? -1);
            light(leads(entry));
          },
        },
        element("small", {}, `[${entry}]`),
        element("span", {}, grouped(value)),
      );
    byId("tables").append(
      element(
        "div",
        { class: "table" },
        element("h3", {}, `example of table ${number}: ${table.facts}`),
        element("div", { class: "chips" }, ...table.entries.map(chip)),
      ),
    );
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
  const indexOf = (event) => {
    const found = event.target.closest("[data-block]");
    return found ? Number(found.dataset.block) : -1;
  };
  area.addEventListener("pointerover", (event) => hover(indexOf(event)));
  area.addEventListener("pointerleave", () => hover(-1));
  area.addEventListener("click", (event) => {
    const index = indexOf(event);
    pin(index === map.pinned ? -1 : index);
  });
  area.addEventListener("dblclick", (event) => enlarge(indexOf(event)));
  area.addEventListener("keydown", onKey);
  if (threadOf(0)) {
    byId("colours").addEventListener("change", () => {
      map.colours = byId("colours").value;
      redraw();
    });
  } else byId("colours").parentElement.remove();
  byId("pitch").addEventListener("change", () => {
    map.pitch = byId("pitch").value;
    redraw();
  });
  drawMap();
  let width = area.clientWidth;
  new ResizeObserver(() => {
    if (area.clientWidth === width) return;
    width = area.clientWidth;
    redraw();
  }).observe(area);
}
startMap();
