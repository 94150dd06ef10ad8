// Elements are made with createElement and textContent alone: no text of a user ever becomes markup.
const SVG = "http://www.w3.org/2000/svg";
const UNPRINTABLE = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;
const root = document.documentElement;
root.classList.add("no-script");

function byId(id) { return document.getElementById(id); }

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  for (const child of [].concat(children === undefined || children === null ? [] : children)) {
    node.append(typeof child === "string" ? child.replace(UNPRINTABLE, "\ufffd") : child);
  }
  return node;
}

function make(name, attributes, children) { return fill(document.createElement(name), attributes, children); }
function draw(name, attributes, children) { return fill(document.createElementNS(SVG, name), attributes, children); }

// A number is shown with a true minus; a missing one as a dash.
function number(value, digits) {
  if (value === null || Number.isNaN(value)) return "–";
  return value.toFixed(digits === undefined ? 4 : digits).replace("-", "−");
}

function signed(value) {
  const written = number(value);
  if (written === "–" || Number(value.toFixed(4)) === 0) return written.replace("−", "");
  return value > 0 ? "+" + written : written;
}

function count(value, one, many) { return value.toLocaleString("en") + " " + (value === 1 ? one : many); }

// Columns come as base64: distinct values once, and for each row which of them.
function bytes(text) {
  const letters = atob(text);
  const found = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place += 1) found[place] = letters.charCodeAt(place);
  return found.buffer;
}

function codes(column) {
  const kind = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[column.bytes];
  return new kind(bytes(column.codes));
}

function numbers(column) {
  const distinct = new Float64Array(bytes(column.values));
  return Float64Array.from(codes(column), (code) => distinct[code]);
}

// What is decoded once is kept.
function remembered(work) {
  const known = new Map();
  return (...key) => {
    const name = key.join(" ");
    if (!known.has(name)) known.set(name, work(...key));
    return known.get(name);
  };
}

// How long things take can be read with performance.getEntriesByType("measure").
function timed(name, work) {
  const start = performance.now();
  const result = work();
  performance.measure("rankbeam:" + name, { start: start, end: performance.now() });
  return result;
}

// What the reader chose; a part of the page that depends on it listens.
const state = { data: null, metric: 0, one: 0, other: 0 };
const listeners = [];
function whenChosen(work) { listeners.push(work); }
function choose(change) {
  Object.assign(state, change);
  for (const listener of listeners) listener();
}
const valuesOf = remembered((metric, configuration) => numbers(state.data.values[metric][configuration]));
function comparing() { return state.data.order.length > 1; } // configurations with equal values are one
function say(words) { byId("said").textContent = words; }

// The theme: the reader's last choice, else that of the system.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function storedTheme() {
  try { return localStorage.getItem("rankbeam-theme"); } catch (error) { return null; }
}
function theme() { return storedTheme() || root.dataset.chosen || (dark.matches ? "dark" : "light"); }
function showTheme() {
  root.dataset.theme = theme();
  const button = byId("theme");
  if (button) {
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", "Change to the " + (theme() === "dark" ? "light" : "dark") + " theme");
  }
}
function changeTheme() {
  const chosen = theme() === "dark" ? "light" : "dark";
  root.dataset.chosen = chosen;
  try { localStorage.setItem("rankbeam-theme", chosen); } catch (error) { /* a page without a place to remember */ }
  showTheme();
}
showTheme();
dark.addEventListener("change", showTheme);
