// Panels of one metric each, of which one is shown, and tables that are sorted by a click on a column's name.
function showPanels() {
  for (const panel of document.querySelectorAll("[data-metric]")) {
    panel.hidden = Number(panel.dataset.metric) !== state.metric;
  }
}

function startPanels() {
  const selector = byId("metric");
  selector.value = "0";
  selector.addEventListener("change", () => {
    choose({ metric: Number(selector.value) });
    say("Showing " + state.data.metrics[state.metric]);
  });
  whenChosen(() => {
    selector.value = String(state.metric);
    showPanels();
  });
}

function sortKey(row, column) {
  const cell = row.cells[column];
  const written = cell.dataset.sort === undefined ? cell.textContent.trim() : cell.dataset.sort;
  if (!cell.matches(".number, .quiet")) return written.toLowerCase();
  const found = parseFloat(written.replace(/,/g, "").replace("−", "-"));
  return Number.isNaN(found) ? null : found;
}

function compareKeys(one, other) {
  if (one === null || other === null) return (one === null) - (other === null);
  return typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
}

function sortTable(table, head, column) {
  const descending = head.getAttribute("aria-sort") === "ascending"
    || (head.classList.contains("number") && head.getAttribute("aria-sort") !== "descending");
  const rows = Array.from(table.tBodies[0].rows, (row) => ({ row: row, key: sortKey(row, column) }));
  const sign = descending ? -1 : 1;
  rows.sort((a, b) => (a.key === null || b.key === null ? compareKeys(a.key, b.key) : sign * compareKeys(a.key, b.key)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  table.tBodies[0].append(...rows.map((each) => each.row));
}

function startTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      if (head.dataset.fixed !== undefined) return;
      const button = make("button", { type: "button", class: "sort" }, Array.from(head.childNodes));
      head.append(button);
      button.addEventListener("click", () => sortTable(table, head, column));
    });
  }
}
