// What a GPU and a CPU do with a transfer, and what the memory allows.

/** Sectors or lines that are drawn. */
const MOST_UNITS = 64;

/** Units of memory, each with the bytes that are wanted of it in the colour of their packed order. */
function unitsOf(units, size, bytes, lane) {
  const drawn = units.slice(0, MOST_UNITS).map(({ memory, wanted }) => {
    const width = size * (size > 32 ? 2 : 3);
    const picture = shape(
      "svg",
      { viewBox: `0 0 ${size} 6`, width, height: 16, preserveAspectRatio: "none" },
      shape("rect", { class: "gap", x: 0, y: 0, width: size, height: 6 }),
    );
    for (const part of wanted) {
      for (let at = 0; at < part.bytes;) {
        // A part may be that of several lanes.
        const packed = part.packed + at,
          length = Math.min(part.bytes - at, lane - (packed % lane));
        picture.append(
          shape("rect", {
            x: part.at + at,
            y: 0,
            width: length,
            height: 6,
            fill: colour((packed + length / 2) / bytes),
            "data-lane": Math.floor(packed / lane),
          }),
        );
        at += length;
      }
    }
    return element("div", { class: "unit" }, picture, element("small", {}, grouped(memory)));
  });
  const rest = units.length > MOST_UNITS ? [element("p", { class: "faint" }, `and ${grouped(units.length - MOST_UNITS)} more`)] : [];
  return element("div", {}, element("div", { class: "units" }, ...drawn), ...rest);
}

/** The lanes of a warp; a lane and its bytes are marked together. */
function warpOf({ lane, bytes, sectors }) {
  const lanes = Math.ceil(bytes / lane);
  const picture = shape("svg", { viewBox: `0 0 ${32 * 20} 20`, class: "lanes" });
  for (let number = 0; number < 32; number += 1) {
    const used = number < lanes;
    picture.append(
      shape(
        "g",
        used ? { "data-lane": number } : {},
        shape(
          "rect",
          used
            ? { x: number * 20, y: 0, width: 19, height: 20, rx: 3, fill: colour(((number + 0.5) * lane) / bytes) }
            : { class: "gap", x: number * 20, y: 0, width: 19, height: 20, rx: 3 },
        ),
        shape("text", { x: number * 20 + 9.5, y: 13.5, class: used ? "" : "dark" }, String(number)),
      ),
    );
  }
  const wanted = sectors.reduce((sum, unit) => sum + unit.wanted.reduce((part, { bytes: some }) => part + some, 0), 0);
  const share = sectors.length ? wanted / (sectors.length * 32) : 1;
  const made = element(
    "div",
    { class: "card" },
    element("h3", {}, `the first warp of a pack: ${lanes} lanes of ${bytesText(lane)}`),
    picture,
    element(
      "p",
      { class: "faint" },
      `reads ${grouped(sectors.length)} sectors of 32 bytes, ${bytesText(sectors.length * 32)} for ${bytesText(wanted)}: ${(100 * share).toPrecision(3)} % are wanted`,
    ),
    bar(share),
    unitsOf(sectors, 32, bytes, lane),
  );
  const mark = (event) => {
    const found = event.target.closest("[data-lane]");
    made.classList.toggle("lit", Boolean(found));
    for (const each of made.querySelectorAll("[data-lane]"))
      each.classList.toggle("on", Boolean(found) && each.dataset.lane === found.dataset.lane);
  };
  made.addEventListener("pointerover", mark);
  made.addEventListener("pointerleave", () => made.classList.remove("lit"));
  return made;
}

/** What a kernel is launched with. */
function kernelCard({ direction, kernel, launch, shares, others }) {
  const rows = shares.map(({ who, packed, text, sectors }) =>
    element(
      "tr",
      {},
      element("td", {}, `a ${who}`),
      element("td", { class: "number" }, bytesText(packed)),
      element("td", { class: "number" }, sectors === null ? "" : grouped(sectors)),
      element("td", { class: "number" }, sectors === null ? "" : `${((100 * packed) / (sectors * 32)).toPrecision(3)} %`),
      element("td", {}, text),
    ),
  );
  const heads = ["", "moves", "sectors", "wanted", ""].map((text, at) => element("th", at > 0 && at < 4 ? { class: "number" } : {}, text));
  const table = shares.length ? [element("table", {}, element("tr", {}, ...heads), ...rows)] : [];
  const more = element(
    "details",
    {},
    element("summary", {}, "at other alignments"),
    ...others.map(([call, text]) => element("p", { class: "faint" }, `${call}: ${text}`)),
  );
  return element(
    "div",
    { class: "card" },
    element("h3", {}, direction),
    element("p", {}, kernel),
    element("p", { class: "faint" }, launch),
    ...table,
    more,
  );
}

/** How much of what a transfer touches is wanted. */
function touchedCard(name, size, touched, wanted, error) {
  const share = touched ? wanted / (touched * size) : 1;
  const about = error ? `, estimated to ${(100 * error).toFixed(1)} %` : "";
  const times = share > 1 ? "some bytes are moved several times" : `${(100 * share).toPrecision(3)} % of them are wanted`;
  return element(
    "div",
    { class: "card" },
    element("h3", {}, `${name} of the whole transfer`),
    element("p", {}, `${grouped(touched)} ${name} of ${size} bytes, ${bytesText(touched * size)} in all${about}: ${times}`),
    bar(share),
  );
}

function startGpu() {
  const { gpu } = view;
  if (!gpu) {
    byId("gpu-section").remove();
    return;
  }
  if (gpu.remark) byId("gpu").append(element("p", {}, gpu.remark));
  if (gpu.kernels.length) byId("gpu").append(element("div", { class: "cards" }, ...gpu.kernels.map(kernelCard)));
  const cards = [];
  if (gpu.sectors) cards.push(touchedCard("sectors", 32, gpu.sectors[0], gpu.sectors[1], gpu.sectors[2]));
  if (gpu.warp) cards.unshift(warpOf(gpu.warp));
  if (cards.length) byId("gpu").append(element("div", { class: "cards" }, ...cards));
}

function startCpu() {
  const { cpu } = view;
  const left = cpu.plans.map(([name, text]) =>
    element(
      "div",
      { class: "card" },
      element("h3", {}, name ? `plan of ${name}` : "plan"),
      element("pre", {}, text),
      ...(cpu.decision ? [element("p", { class: "faint" }, cpu.decision)] : []),
    ),
  );
  const cards = element("div", { class: "cards" }, ...left);
  if (cpu.strategies.length) {
    const list = element("pre", { id: "microkernels" });
    const choose = element(
      "select",
      { id: "level", "aria-label": "processor" },
      ...cpu.strategies.map(({ level, here }, at) =>
        element("option", { value: at, selected: here ? "" : null }, here ? `${level} (where this page was made)` : level),
      ),
    );
    const show = () => {
      list.textContent = cpu.strategies[Number(choose.value)].steps.join("\n") || "the steps are interpreted, or part of a kernel";
    };
    choose.addEventListener("change", show);
    show();
    cards.append(element("div", { class: "card" }, element("h3", {}, "microkernels"), choose, list));
  }
  byId("cpu").append(cards);
  const lines = [];
  if (cpu.lines.length) {
    const wanted = cpu.lines_bytes;
    lines.push(
      element(
        "div",
        { class: "card" },
        element("h3", {}, `cache lines of the first ${bytesText(wanted)}`),
        element(
          "p",
          { class: "faint" },
          `${grouped(cpu.lines.length)} lines of 64 bytes: ${((100 * wanted) / (64 * cpu.lines.length)).toPrecision(3)} % of them are wanted`,
        ),
        unitsOf(cpu.lines, 64, wanted, 64),
      ),
    );
  }
  if (cpu.touched && view.gpu && view.gpu.sectors)
    lines.push(touchedCard("cache lines", 64, cpu.touched[0], view.gpu.sectors[1], cpu.touched[1]));
  if (lines.length) byId("cpu").append(element("div", { class: "cards" }, ...lines));
}

function startRoofline() {
  if (!view.roofline.length) {
    byId("roofline-section").remove();
    return;
  }
  byId("roofline").append(...view.roofline.map((text) => element("p", {}, text)));
}
startGpu();
startCpu();
startRoofline();
