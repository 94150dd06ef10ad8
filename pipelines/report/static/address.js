// What the reader looks at stands behind the # of the address, so that a link leads others to the same place.
// Sections have plain anchors (#queries); a choice is written as #metric=nDCG%4010&one=bm25&query=q17.
const CONTROLS = ["search", "outcome", "slice"];

function readAddress() {
  const written = location.hash.slice(1);
  return new URLSearchParams(written.includes("=") ? written : "");
}

function placeOf(names, name, otherwise) {
  const place = name === null ? -1 : names.indexOf(name);
  return place < 0 ? otherwise : place;
}

function address(query) {
  const { data } = state;
  const words = new URLSearchParams({ metric: data.metrics[state.metric] });
  if (comparing()) {
    words.set("one", data.configurations[state.one]);
    words.set("other", data.configurations[state.other]);
  }
  for (const id of CONTROLS) if (byId(id) && byId(id).value && byId(id).value !== "all") words.set(id, byId(id).value);
  for (const each of document.querySelectorAll("[data-parameter]")) if (each.value) words.set(each.id, each.value);
  if (query !== undefined) words.set("query", data.ids[query]);
  return "#" + words.toString();
}

function writeAddress(query) {
  if (root.dataset.ready) history.replaceState(null, "", address(query));
}

// What the address says, before anything is drawn.
function chosenByAddress() {
  const words = readAddress();
  const { data } = state;
  // What is not in the address is as at the start.
  for (const id of [...CONTROLS, ...Array.from(document.querySelectorAll("[data-parameter]"), (each) => each.id)]) {
    if (!byId(id)) continue;
    byId(id).value = words.get(id) || "";
    if (byId(id).selectedIndex === -1) byId(id).selectedIndex = 0;
  }
  return {
    metric: placeOf(data.metrics, words.get("metric"), 0),
    one: placeOf(data.configurations, words.get("one"), data.pair[0]),
    other: placeOf(data.configurations, words.get("other"), data.pair[1]),
  };
}

function followAddress() {
  if (!location.hash.includes("=")) return;
  const query = placeOf(state.data.ids, readAddress().get("query"), -1); // the choice writes an address of its own
  choose(chosenByAddress());
  showFiltered();
  if (query >= 0) showQuery(query);
}

function startAddress() {
  whenChosen(() => writeAddress());
  window.addEventListener("hashchange", followAddress);
}
