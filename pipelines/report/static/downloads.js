// CSV files, made from the data in the page. Text that a spreadsheet would run as a formula is quoted with an apostrophe.
function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
  return /[",\r\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
}

function lines(rows) { return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"; }

function tableRows(found) {
  const positions = Object.entries(found.positions);
  const columns = Object.entries(found.columns);
  const names = [...positions.map(([name]) => name), ...columns.map(([name]) => name)];
  const size = found.columns.metric.length;
  return [names, ...Array.from({ length: size }, (_, row) => [
    ...positions.map(([, values]) => state.data.configurations[values[row]]), ...columns.map(([, values]) => values[row]),
  ])];
}

function queryTable() {
  const { data } = state;
  const rows = [["configuration", "query_id", "text", "status", ...data.slices.map((slice) => slice.name), ...data.metrics]];
  for (const configuration of data.order) {
    const values = data.metrics.map((_, metric) => valuesOf(metric, configuration));
    data.ids.forEach((id, query) => rows.push([
      data.configurations[configuration], id, data.texts ? data.texts[query] : null, statusOf(configuration, query),
      ...data.slices.map((slice) => slice.values[sliceCodes(slice.name)[query]]), ...values.map((column) => column[query]),
    ]));
  }
  return rows;
}

const DOWNLOADS = {
  leaderboard: ["leaderboard.csv", () => tableRows(state.data.leaderboard)],
  comparisons: ["comparisons.csv", () => tableRows(state.data.comparisons)],
  queries: ["per_query.csv", queryTable],
};

function download(name) {
  const [file, rows] = DOWNLOADS[name];
  save(file, "\ufeff" + lines(rows()), "text/csv;charset=utf-8");
}

function save(file, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type: type }));
  const link = make("a", { href: address, download: file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function startDownloads() {
  for (const button of document.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () => download(button.dataset.download));
  }
}
