// Constructors, the layout behind each pass, and the canonical layout, side by side.

/** A graph, whose places the page was given. */
function drawGraph(drawing) {
  const made = shape("svg", {
    viewBox: `0 0 ${drawing.width} ${drawing.height}`,
    width: drawing.width,
    height: drawing.height,
    role: "img",
  });
  // Texts stay legible; what is wider is scrolled.
  made.style.minWidth = `${Math.round(drawing.width * 0.7)}px`;
  const labels = [];
  for (const { from, to, text } of drawing.edges) {
    const [above, below] = [drawing.nodes[from], drawing.nodes[to]];
    const [x, y, end, bottom] = [above.x + above.width / 2, above.y + above.height, below.x + below.width / 2, below.y];
    const bend = Math.min((bottom - y) / 2, 30);
    made.append(shape("path", { class: "edge", d: `M${x} ${y}C${x} ${y + bend} ${end} ${bottom - bend} ${end} ${bottom}` }));
    if (text) labels.push(shape("text", { class: "edge-text", x: end + (x - end) * 0.35, y: bottom - 9 }, text));
  }
  for (const node of drawing.nodes) {
    const centre = node.x + node.width / 2;
    const detail = shape("text", { class: "detail", x: centre, y: node.y + 31 }, node.detail);
    made.append(
      shape(
        "g",
        { class: node.new ? "node new" : "node" },
        shape("title", {}, `${node.title} ${node.whole || node.detail}`),
        shape("rect", { x: node.x, y: node.y, width: node.width, height: node.height, rx: 7 }),
        shape("text", { class: "title", x: centre, y: node.y + 17 }, node.title),
        detail,
      ),
    );
  }
  made.append(...labels);
  return made;
}

/** A text whose lines are marked that another does not have, whatever the numbers of nodes are. */
function compared(text, before) {
  const known = new Set(before.split("\n").map((line) => line.replace(/%\d+/g, "%")));
  return text.split("\n").flatMap((line, at) => {
    if (!known.has(line.replace(/%\d+/g, "%"))) return [element("span", { class: "new" }, line)];
    return [line + (at === text.split("\n").length - 1 ? "" : "\n")];
  });
}

/** A graph with its title and text. */
const column = (title, drawing, ...text) =>
  element(
    "div",
    { class: "column" },
    element("h3", {}, title),
    element("div", { class: "graph" }, drawGraph(drawing)),
    ...(text.length ? [element("pre", {}, ...text)] : []),
  );

/** The title of a stage. */
const stageTitle = (stage, index) =>
  index === 0 ? "layout as lowered" : `layout after ${stage.pass === "canonical" ? "all passes" : stage.pass}`;

function showStage(index) {
  const { stages } = view;
  const last = stages.length - 1,
    stage = stages[index];
  const fired = stage.fired ? `, fired ${grouped(stage.fired)} ${stage.fired === 1 ? "time" : "times"}` : "";
  byId("stage-text").replaceChildren(element("b", {}, stage.pass), `${fired}: ${stage.summary}`);
  byId("stage").value = index;
  for (const button of document.querySelectorAll("#slider .passes button")) {
    if (Number(button.dataset.stage) === index) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  byId("layouts").replaceChildren(
    column("constructors", view.constructors, ...(view.notation.length <= 600 ? [view.notation] : [])),
    column(stageTitle(stage, index), stage.drawing, ...(index ? compared(stage.text, stages[index - 1].text) : [stage.text])),
    column(
      "canonical layout",
      { ...stages[last].drawing, nodes: stages[last].drawing.nodes.map((node) => ({ ...node, new: false })) },
      stages[last].text,
    ),
  );
}

function startLayouts() {
  const { stages } = view;
  if (!view.constructors) {
    byId("layouts-title").textContent = "Layouts above and below the tables";
    byId("layouts").append(...stages.map((stage) => column(`${stage.pass}: ${stage.summary}`, stage.drawing, stage.text)));
    return;
  }
  const passes = stages.map((stage, index) =>
    element("button", { type: "button", "data-stage": index, onclick: () => showStage(index) }, stage.pass),
  );
  const input = element("input", {
    type: "range",
    id: "stage",
    min: 0,
    max: stages.length - 1,
    step: 1,
    "aria-label": "passes",
    oninput: (event) => showStage(Number(event.target.value)),
  });
  if (stages.length < 2) input.disabled = true;
  byId("slider").append(element("div", { class: "passes" }, ...passes), input, element("p", { id: "stage-text" }));
  showStage(Math.min(1, stages.length - 1));
}
startLayouts();
