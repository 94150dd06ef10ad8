// One query whole, below the list: its values, answers, rankings, and what the reader remarks.
function paneStep(label, place) {
  const button = make("button", { type: "button" }, label);
  button.disabled = place < 0 || place >= table.order.length;
  button.addEventListener("click", () => openQuery(table.order[place]));
  return button;
}

function paneHead(query) {
  const place = table.order.indexOf(query);
  const back = make("a", { href: "#query-list" }, "Back to the list");
  back.addEventListener("click", (event) => {
    event.preventDefault();
    const row = document.querySelector(`[data-query="${query}"] button.open`);
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
  });
  return [
    make("h3", {}, queryLabel(query)),
    make("div", { class: "pages" }, [paneStep("Previous query", place - 1), paneStep("Next query", place + 1),
      make("span", {}, `${(place + 1).toLocaleString("en")} of ${table.order.length.toLocaleString("en")}`), back]),
  ];
}

function showPane() {
  const pane = byId("query-pane");
  pane.hidden = table.shown === null;
  pane.replaceChildren(...(table.shown === null ? [] : [...paneHead(table.shown), remarks(table.shown), ...detail(table.shown)]));
}
