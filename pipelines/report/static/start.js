// The script stands before the page, so that the theme is right from the start; all else waits for the page.
document.addEventListener("DOMContentLoaded", () => timed("start", () => {
  state.data = JSON.parse(byId("data").textContent);
  root.classList.remove("no-script");
  showTheme();
  byId("theme").addEventListener("click", changeTheme);
  startTables();
  startPanels();
  startDistribution();
  startMarks();
  startQueries();
  startDownloads();
  startFilterParameters();
  choose(chosenByAddress());
  startAddress();
  showFiltered();
  root.dataset.ready = "true";
  followAddress();
}));
