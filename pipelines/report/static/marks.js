// Queries that the reader marks, with comments: kept by this browser for this run, exported for `rankbeam label`.
const MARKS = "rankbeam-marks:";
const marks = new Map(); // position of a query -> comment

function hasMark(query) { return marks.has(query); }

function readMarks() {
  let known = {};
  try { known = JSON.parse(localStorage.getItem(MARKS + state.data.runId)) || {}; } catch (error) { /* no place to remember */ }
  const places = new Map(state.data.ids.map((id, place) => [id, place]));
  for (const [id, comment] of Object.entries(known)) if (places.has(id)) marks.set(places.get(id), String(comment));
}

function keepMarks() {
  const known = Object.fromEntries([...marks].map(([query, comment]) => [state.data.ids[query], comment]));
  try { localStorage.setItem(MARKS + state.data.runId, JSON.stringify(known)); } catch (error) { /* no place to remember */ }
  showMarks();
}

function showMarks() {
  byId("export-marked").disabled = marks.size === 0;
  byId("export-marked").textContent = `Export ${count(marks.size, "marked query", "marked queries")}`;
  for (const button of document.querySelectorAll("button.mark-query")) {
    button.setAttribute("aria-pressed", String(hasMark(Number(button.dataset.marks))));
  }
}

function setMark(query, comment) {
  if (comment === null) marks.delete(query);
  else marks.set(query, comment);
  keepMarks();
}

function markButton(query) {
  const name = "Mark " + state.data.ids[query];
  const button = make("button", { type: "button", class: "mark-query", "data-marks": query, "aria-pressed": String(hasMark(query)), "aria-label": name, title: name });
  button.addEventListener("click", () => {
    setMark(query, hasMark(query) ? null : "");
    const field = byId("comment");
    if (field && query === table.shown) field.value = marks.get(query) || "";
  });
  return button;
}

// A mark and a comment; a comment marks its query.
function remarks(query) {
  const field = make("textarea", { id: "comment", rows: 1, placeholder: "why this query matters" });
  field.value = marks.get(query) || "";
  field.addEventListener("input", () => setMark(query, field.value === "" && !hasMark(query) ? null : field.value));
  return make("div", { class: "controls remarks" }, [markButton(query), make("label", { for: "comment" }, "Comment"), field]);
}

// JSON lines; `rankbeam label OUT --queries FILE` has people judge these queries.
function exportMarked() {
  const rows = [...marks].sort(([one], [other]) => one - other).map(([query, comment]) => JSON.stringify({
    query_id: state.data.ids[query], text: state.data.texts ? state.data.texts[query] : null, comment: comment, run_id: state.data.runId,
  }));
  save(`marked-${state.data.runId}.jsonl`, rows.join("\n") + "\n", "application/x-ndjson");
}

function startMarks() {
  readMarks();
  byId("export-marked").addEventListener("click", exportMarked);
  window.addEventListener("storage", (event) => { // another tab with this report
    if (event.key !== MARKS + state.data.runId) return;
    marks.clear();
    readMarks();
    showMarks();
  });
  whenChosen(showMarks);
}
