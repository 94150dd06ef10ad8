// What the reader looks at stands behind the # of the address, so that a link leads others to the same place.
// Sections have plain anchors (#queries); a choice is written as #metric=nDCG%4010&one=bm25&query=q17.
function controls() {
  return Array.from(document.querySelectorAll("#search, #outcome, #slice, [data-parameter]"), (each) => [each.name || each.id, each]);
}

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
  for (const [name, control] of controls()) if (control.value && !(name === "outcome" && control.value === "all")) words.set(name, control.value);
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
  for (const [name, control] of controls()) {
    control.value = words.get(name) || "";
    if (control.selectedIndex === -1) control.selectedIndex = 0;
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
