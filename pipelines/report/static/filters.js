// Configurations by the values of their parameters.
function showFiltered() {
  const chosen = Array.from(document.querySelectorAll("[data-parameter]"), (each) => each.selectedIndex - 1);
  const rows = Array.from(document.querySelectorAll("#overview tbody tr"));
  for (const row of rows) {
    const values = row.dataset.values.trim().split(" ");
    row.hidden = chosen.some((value, place) => value >= 0 && !values[place].split("|").includes(String(value)));
  }
  const shown = rows.filter((row) => !row.hidden).length;
  if (byId("filtered")) byId("filtered").textContent = shown === rows.length ? "" : `${shown} of ${count(rows.length, "configuration", "configurations")}`;
}

function startFilterParameters() {
  for (const selector of document.querySelectorAll("[data-parameter]")) {
    selector.addEventListener("change", () => {
      showFiltered();
      writeAddress();
    });
  }
}
