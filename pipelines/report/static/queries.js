// The table of queries: searched, filtered and sorted as a whole, shown page by page, with one query in the pane below.
const ROWS = 20;
const OUTCOMES = {
  all: ["every query", () => true],
  worse: ["worse", (value) => value < 0],
  better: ["better", (value) => value > 0],
  equal: ["equal", (value) => value === 0],
  unknown: ["without a value", (value) => Number.isNaN(value)],
};
const table = { order: [], page: 0, column: null, descending: false, lowerIsBetter: false, shown: null, columns: [] };

const statusCodes = remembered((configuration) => codes(state.data.status[configuration]));
const judgedCodes = remembered((metric, configuration) => codes(state.data.judgedStatus[metric][configuration]));
// What became of a query: of its ranking or, where a metric is judged, of that.
function statusOf(configuration, query, metric = null) {
  if (metric !== null && metric in state.data.judgedStatus) {
    return state.data.statuses[judgedCodes(metric, configuration)[query]];
  }
  return state.data.status ? state.data.statuses[statusCodes(configuration)[query]] : "ok";
}
const sliceCodes = remembered((name) => codes(state.data.slices.find((slice) => slice.name === name)));
const haystack = remembered(() => state.data.ids.map((id, place) =>
  (id + "\n" + ((state.data.texts && state.data.texts[place]) || "")).toLowerCase()));

function queryColumns() {
  const value = (configuration) => ({
    label: state.data.configurations[configuration], key: valuesOf(state.metric, configuration), configuration: configuration,
  });
  if (!comparing()) return { one: value(state.one) };
  const found = differences();
  return { one: value(state.one), other: value(state.other), difference: { label: "Difference", key: found, largest: largest(found) } };
}

function passing() {
  const outcome = comparing() ? OUTCOMES[byId("outcome").value][1] : OUTCOMES.all[1];
  const difference = comparing() ? table.columns.difference.key : null;
  const isMarked = byId("only-marked").checked ? hasMark : () => true;
  const needle = byId("search").value.trim().toLowerCase();
  const slice = byId("slice") && byId("slice").value ? JSON.parse(byId("slice").value) : null;
  const members = slice ? sliceCodes(slice[0]) : null;
  const code = slice ? state.data.slices.find((each) => each.name === slice[0]).values.indexOf(slice[1]) : null;
  const found = [];
  const words = haystack();
  for (let query = 0; query < words.length; query += 1) {
    if (difference && !outcome(state.data.signs[state.metric] * difference[query])) continue;
    if (members && members[query] !== code) continue;
    if (needle && !words[query].includes(needle)) continue;
    if (!isMarked(query)) continue;
    found.push(query);
  }
  return found;
}

function sorted(found) {
  const sign = table.descending ? -1 : 1;
  if (table.column === "query") return table.descending ? found.reverse() : found;
  const key = table.columns[table.column].key;
  return found.sort((a, b) => {
    const [one, other] = [key[a], key[b]];
    if (Number.isNaN(one) || Number.isNaN(other)) return (Number.isNaN(one) - Number.isNaN(other)) || a - b;
    return sign * (one - other) || a - b;
  });
}

// The page of the list with the shown query, where the list still has it; else the first page with its first query.
function refresh(name) {
  writeAddress();
  timed(name, () => {
    table.order = sorted(passing());
    table.page = 0;
    if (!table.order.includes(table.shown)) table.shown = table.order.length ? table.order[0] : null;
    showRows();
    showPane();
  });
  byId("found").textContent = state.data.metrics[state.metric] + " of " + (table.order.length === state.data.ids.length
    ? count(table.order.length, "query", "queries")
    : `${table.order.length.toLocaleString("en")} of ${count(state.data.ids.length, "query", "queries")}`);
}

function pages() { return Math.max(1, Math.ceil(table.order.length / ROWS)); }

function showRows() {
  const shown = table.order.slice(table.page * ROWS, (table.page + 1) * ROWS);
  const rows = shown.map(queryRow);
  const none = make("tr", {}, make("td", { colspan: 5 }, "No query is like this."));
  byId("query-rows").replaceChildren(...(rows.length ? rows : [none]));
  byId("page").textContent = `Page ${table.page + 1} of ${pages()}`;
  for (const id of ["first", "previous"]) byId(id).disabled = table.page === 0;
  for (const id of ["next", "last"]) byId(id).disabled = table.page >= pages() - 1;
}

function largest(column) { return column.reduce((most, value) => (Math.abs(value) > most ? Math.abs(value) : most), 0) || 1; }

function isWorse(difference) { return state.data.signs[state.metric] * difference < 0; }

function spark(difference) {
  const size = Math.abs(difference) / table.columns.difference.largest * 32;
  return draw("svg", { viewBox: "0 0 64 12", class: "spark " + (isWorse(difference) ? "loss" : "win"), "aria-hidden": "true" }, [
    draw("rect", { x: difference < 0 ? 32 - size : 32, width: size, y: 2, height: 8 }),
    draw("line", { x1: 32, x2: 32, y1: 0, y2: 12 }),
  ]);
}

function valueCell(name, query) {
  const column = table.columns[name];
  const value = column.key[query];
  if (name === "difference") {
    const kind = isWorse(value) ? " loss" : value ? " win" : "";
    return make("td", { class: "number strong" + kind }, Number.isNaN(value) ? "–" : [signed(value), spark(value)]);
  }
  const status = statusOf(column.configuration, query, state.metric);
  if (Number.isNaN(value)) return make("td", { class: "number bad" }, status);
  return make("td", { class: "number" }, number(value) + (status === "empty" ? " (empty)" : ""));
}

function queryLabel(query) {
  const text = state.data.texts && state.data.texts[query];
  const id = state.data.ids[query];
  return [make("bdi", {}, text || id)].concat(text ? [" ", make("bdi", { class: "query-id" }, id)] : []);
}

function queryRow(query) {
  const isShown = query === table.shown;
  const button = make("button", { type: "button", class: "open", "aria-current": isShown ? "true" : null }, queryLabel(query));
  button.addEventListener("click", () => openQuery(query));
  return make("tr", { "data-query": query, class: isShown ? "shown" : null }, [
    make("td", {}, markButton(query)), make("td", { class: "query" }, button),
  ].concat(Object.keys(table.columns).map((name) => valueCell(name, query))));
}

// Show a query in the pane, and its page of the list.
function openQuery(query) {
  table.shown = query;
  table.page = Math.floor(table.order.indexOf(query) / ROWS);
  showRows();
  showPane();
  byId("query-pane").scrollIntoView({ block: "start" });
  byId("query-pane").focus({ preventScroll: true });
  writeAddress(query);
}

// Show a query, whatever hides it.
function showQuery(query) {
  if (!table.order.includes(query)) {
    byId("search").value = "";
    byId("only-marked").checked = false;
    for (const id of ["outcome", "slice"]) if (byId(id)) byId(id).selectedIndex = 0;
    refresh("filter");
  }
  openQuery(query);
}

function sortBy(name) {
  table.descending = table.column === name ? !table.descending : false;
  table.column = name;
  showHead();
  refresh("sort");
}

function showHead() {
  const columns = [["query", "Query"], ...Object.entries(table.columns).map(([name, column]) => [name, column.label])];
  byId("query-head").replaceChildren(make("td"), ...columns.map(([name, label]) => {
    const button = make("button", { type: "button", class: "sort", "data-column": name }, label);
    button.addEventListener("click", () => {
      sortBy(name);
      document.querySelector(`[data-column="${name}"]`).focus();
    });
    const direction = table.column === name ? (table.descending ? "descending" : "ascending") : null;
    return make("th", { scope: "col", class: name === "query" ? "" : "number", "aria-sort": direction }, button);
  }));
}

function turn(page) {
  table.page = Math.max(0, Math.min(pages() - 1, page));
  showRows();
}

function startFilters() {
  if (byId("outcome")) {
    byId("outcome").replaceChildren(...Object.entries(OUTCOMES).map(([name, [label]]) => make("option", { value: name }, label)));
    byId("outcome").addEventListener("change", () => refresh("filter"));
  }
  if (byId("slice")) {
    const groups = state.data.slices.map((slice) => make("optgroup", { label: slice.name }, slice.values.map((value) =>
      make("option", { value: JSON.stringify([slice.name, value]) }, `${slice.name}: ${value}`))));
    byId("slice").replaceChildren(make("option", { value: "" }, "all"), ...groups);
    byId("slice").addEventListener("change", () => refresh("filter"));
  }
  byId("search").addEventListener("input", () => refresh("search"));
  byId("only-marked").addEventListener("change", () => refresh("filter"));
}

function startQueries() {
  startFilters();
  for (const [id, page] of [["first", () => 0], ["previous", () => table.page - 1], ["next", () => table.page + 1], ["last", () => pages()]]) {
    byId(id).addEventListener("click", () => turn(page()));
  }
  table.column = comparing() ? "difference" : "one";
  whenChosen(() => {
    if (table.column !== "query" && table.lowerIsBetter !== lowerIsBetter()) table.descending = !table.descending; // the worst stay first
    table.lowerIsBetter = lowerIsBetter();
    table.columns = queryColumns();
    showHead();
    refresh("choose");
  });
}
