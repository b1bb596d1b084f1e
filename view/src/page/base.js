"use strict";
// What all parts of the page need: the data, elements, numbers and colours.

const view = JSON.parse(document.getElementById("view").textContent);

/** The element with an id. */
const byId = (id) => document.getElementById(id);

/** A new element with attributes and children; texts are never read as markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** The same for a shape. */
function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? Math.round(value * 100) / 100 : value);
  }
  made.append(...children);
  return made;
}

/** Digits in groups of three. */
const grouped = (number) => Math.round(number).toLocaleString("en-US").replace("-", "\u2212");

/** Bytes in a unit that people can read. */
function bytesText(number) {
  if (number < 10240) return `${grouped(number)} ${number === 1 ? "byte" : "bytes"}`;
  let value = number / 1024,
    unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(1)} ${["KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

/** The colour of a share of the packed order, from 0 to 1. */
function colour(share) {
  const stops = view.palette;
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const stop = Math.min(Math.floor(at), stops.length - 2);
  const mixed = stops[stop].map((from, channel) => Math.round(from + (stops[stop + 1][channel] - from) * (at - stop)));
  return `rgb(${mixed.join(" ")})`;
}

/** A bar that shows a share of a whole. */
const bar = (share) => element("div", { class: "bar" }, element("i", { style: `width:${(100 * Math.min(share, 1)).toFixed(2)}%` }));

/** The page's head and foot. */
function drawHead() {
  byId("notation").textContent = view.notation;
  // An argument in the notation has no name of its own.
  if (view.name === "type" && view.notation.length <= 90) {
    byId("name").textContent = view.notation;
    byId("name").className = "code";
    byId("notation").remove();
  }
  byId("remarks").append(...view.remarks.map((text) => element("p", {}, text)));
  for (const [name, value] of view.facts) {
    byId("facts").append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }
  byId("notes").append(...view.notes.map((text) => element("li", {}, text)));
  for (const [word, meaning] of view.words) {
    byId("words").append(element("dt", {}, word), element("dd", {}, meaning));
  }
  byId("footer").textContent = `dtc view, version ${view.version}`;
  byId("theme").addEventListener("click", () => {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  });
}
drawHead();
