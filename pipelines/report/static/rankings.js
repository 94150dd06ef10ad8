// The rankings of a query, side by side.
const SHOWN = 20;

function highestGrade() {
  let most = 1;
  for (const queries of Object.values(state.data.rankings.lists)) {
    for (const list of Object.values(queries)) {
      for (const grade of list[2]) if (grade !== null && grade > most) most = grade;
    }
  }
  return most;
}
const mostGrade = remembered(highestGrade);

function grade(value) {
  if (value === null) return make("span", { class: "grade grade-none", title: "not judged" }, [
    make("span", { "aria-hidden": "true" }, "?"), make("span", { class: "visually-hidden" }, "not judged")]);
  const level = value <= 0 ? 0 : Math.min(4, Math.max(1, Math.ceil(value / mostGrade() * 4)));
  return make("span", { class: "grade grade-" + level }, String(value).replace("-", "−"));
}

function listOf(configuration, query) {
  const lists = state.data.rankings && state.data.rankings.lists[configuration];
  return (lists && lists[query]) || null;
}

function documentParts(place) {
  const [id, text, title] = state.data.rankings.documents[place];
  const name = title ? [make("bdi", { class: "title" }, title), " ", make("bdi", { class: "query-id" }, id)] : [make("bdi", {}, id)];
  return name.concat(text ? [make("span", { class: "snippet" }, text)] : []);
}

// Relevant documents that are in no ranking: what every configuration misses.
function unretrieved(query) {
  const list = state.data.rankings && state.data.rankings.unretrieved[query];
  if (!list) return [];
  const rows = list[0].map((place, at) => make("tr", {}, [make("td", {}, grade(list[1][at])), make("td", { class: "document" }, documentParts(place))]));
  const more = list[2] > rows.length ? `, the first ${rows.length} of ${list[2].toLocaleString("en")}` : "";
  return [make("div", { class: "scroll unretrieved", role: "region", "aria-label": "Relevant documents not retrieved", tabindex: 0 }, make("table", { class: "missed" }, [
    make("caption", {}, "Relevant, and retrieved by no configuration" + more),
    make("thead", {}, make("tr", {}, ["Grade", "Document"].map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, rows)]))];
}

function attributeList(query) {
  const own = state.data.attributes[state.data.ids[query]] || {};
  const sliced = new Set(state.data.slices.map((slice) => slice.name));
  const reference = referenceOf(query);
  const rows = Object.entries(own).filter(([name, value]) => !sliced.has(name) && value !== reference);
  return rows.length ? [make("dl", { class: "attributes" }, rows.flatMap(([name, value]) => [
    make("dt", {}, make("bdi", {}, name)), make("dd", {}, name === "history" ? dialogue(value) : make("bdi", {}, value))]))] : [];
}

// The messages before a query, each in a paragraph; other texts as they are.
function dialogue(text) {
  const messages = messagesOf(text);
  if (!messages.length) return make("bdi", {}, text);
  return make("div", {}, messages.map((message) => make("p", {}, [make("b", {}, message.role + ": "), make("bdi", {}, message.text)])));
}

// Where a document stands in the other ranking; by id, as chunks of one document have other texts.
function elsewhere(document_, other) {
  if (!other) return "";
  const ids = other[0].map((place) => state.data.rankings.documents[place][0]);
  const rank = ids.indexOf(document_) + 1;
  return rank ? "#" + rank : other[3] > SHOWN ? "not in first " + SHOWN : "absent";
}

// Recorded answers may have contexts without ids.
function emptyRanking(configuration, query) {
  const answer = answerOf(configuration, query);
  return answer && answer.contexts.length ? "The contexts of the answer have no doc_id, so they are not a ranking." : "Nothing was retrieved.";
}

function ranking(configuration, query, against) {
  const list = listOf(configuration, query);
  const other = against === null ? null : listOf(against, query);
  const value = valuesOf(state.metric, configuration)[query];
  const about = [make("bdi", {}, state.data.configurations[configuration]), `: ${state.data.metrics[state.metric]} ${number(value)}`];
  if (!list) {
    const status = statusOf(configuration, query);
    const why = status === "failed" ? "The call failed; see Failures."
      : "This ranking is not in the page, which does not hold all of them. It is in results.duckdb, table rankings.";
    return make("div", {}, [make("h4", {}, about), make("p", { class: "note" }, why)]);
  }
  if (!list[0].length) return make("div", {}, [make("h4", {}, about), make("p", { class: "note" }, emptyRanking(configuration, query))]);
  const columns = ["Rank", "Grade", "Document", "Score"].concat(other ? ["Other rank"] : []);
  const rows = list[0].map((place, rank) => {
    const score = list[1][rank];
    return make("tr", {}, [
      make("td", { class: "number" }, String(rank + 1)),
      make("td", {}, grade(list[2][rank])),
      make("td", { class: "document" }, documentParts(place)),
      make("td", { class: "number quiet", "data-label": "score" }, score === null ? "–" : String(Number(score.toPrecision(4))).replace("-", "−")),
    ].concat(other ? [make("td", { class: "number quiet", "data-label": "other rank" }, elsewhere(state.data.rankings.documents[place][0], other))] : []));
  });
  const more = list[3] > list[0].length ? [make("p", { class: "note" },
    `The first ${list[0].length} of ${list[3].toLocaleString("en")} documents.`)] : [];
  const table = make("table", { class: "ranking" }, [
    make("caption", {}, about),
    make("thead", {}, make("tr", {}, columns.map((name) => make("th", { scope: "col", class: name === "Document" || name === "Grade" ? "" : "number" }, name)))),
    make("tbody", {}, rows),
  ]);
  return make("div", {}, [make("div", { class: "scroll", role: "region", "aria-label": "Ranking of " + state.data.configurations[configuration], tabindex: 0 }, table)].concat(more));
}

function detail(query) {
  const about = state.data.slices.map((slice) => `${slice.name}: ${slice.values[sliceCodes(slice.name)[query]]}`);
  const link = make("a", { href: address(query), class: "anchor" }, "Link to this query");
  const parts = [make("p", { class: "note" }, about.length ? [about.join(" · ") + " · ", link] : link)];
  parts.push(...attributeList(query), ...conversation(query), ...answers(query));
  if (!state.data.rankings) {
    parts.push(make("p", { class: "note" }, "This run wrote no rankings (output: rankings: true)."));
    const each = comparing() ? [state.one, state.other] : [state.one];
    for (const configuration of each) parts.push(allValues(configuration, query));
    return parts;
  }
  const sides = comparing() && state.one !== state.other
    ? [ranking(state.one, query, state.other), ranking(state.other, query, state.one)] : [ranking(state.one, query, null)];
  return parts.concat(make("div", { class: "beside" }, sides), unretrieved(query));
}

function allValues(configuration, query) {
  const values = state.data.metrics.map((name, metric) => `${name} ${number(valuesOf(metric, configuration)[query])}`);
  return make("p", {}, [make("bdi", {}, state.data.configurations[configuration]), ": " + values.join(", ")]);
}
