// How the values of two configurations differ, query by query.
const BINS = 40;

function differences() {
  const one = valuesOf(state.metric, state.one);
  const other = valuesOf(state.metric, state.other);
  return one.map((value, place) => value - other[place]);
}

function summary(found) {
  const result = { reach: 0, counts: new Array(BINS).fill(0), mean: null, wins: 0, ties: 0, losses: 0 };
  let sum = 0;
  let known = 0;
  for (const value of found) {
    if (Number.isNaN(value)) continue;
    known += 1;
    sum += value;
    result.reach = Math.max(result.reach, Math.abs(value));
    if (value > 0) result.wins += 1; else if (value < 0) result.losses += 1; else result.ties += 1;
  }
  result.mean = known ? sum / known : null;
  result.reach = result.reach || 1;
  for (const value of found) {
    if (Number.isNaN(value) || value === 0) continue;
    const place = Math.floor(((value / result.reach) + 1) / 2 * BINS);
    result.counts[Math.min(BINS - 1, place)] += 1;
  }
  return result;
}

// A page without all queries has the histograms of configurations against the baseline.
function storedSummary() {
  const reversed = state.one === state.data.baseline;
  const wanted = reversed ? state.other : state.one;
  if (!reversed && state.other !== state.data.baseline) return null;
  const found = state.data.histograms.find((each) => each.metric === state.metric && each.configuration === wanted);
  if (!found || !reversed) return found || null;
  return Object.assign({}, found, {
    counts: found.counts.slice().reverse(), mean: found.mean === null ? null : -found.mean, wins: found.losses, losses: found.wins,
  });
}

function comparison() {
  const table = state.data.comparisons;
  const metric = state.data.metrics[state.metric];
  for (const [one, other, sign] of [[state.one, state.other, 1], [state.other, state.one, -1]]) {
    const place = table.columns.metric.findIndex((name, row) => name === metric && table.columns.slice[row] === "all"
      && table.positions.configuration[row] === one && table.positions.baseline[row] === other);
    const low = place < 0 || !table.columns.ci_low ? null : table.columns.ci_low[place];
    const high = low === null ? null : table.columns.ci_high[place];
    if (low !== null) return sign > 0 ? [low, high] : [-high, -low];
  }
  return null;
}

const lowerIsBetter = () => state.data.signs[state.metric] < 0;

function showDistribution() {
  const { configurations, metrics, confidence } = state.data;
  const [one, other] = [configurations[state.one], configurations[state.other]];
  const found = state.data.sampled ? storedSummary() : summary(differences());
  if (state.one === state.other || found === null) {
    const why = state.one === state.other ? "Choose two different configurations."
      : "This page does not hold all queries; distributions are there for pairs with the baseline.";
    byId("distribution").textContent = why;
    byId("histogram").replaceChildren();
    return;
  }
  const interval = comparison();
  const [better, worse] = lowerIsBetter() ? [found.losses, found.wins] : [found.wins, found.losses];
  const words = `${metrics[state.metric]} of ${one} minus ${other}: better at ${count(better, "query", "queries")}, `
    + `equal at ${found.ties.toLocaleString("en")}, worse at ${worse.toLocaleString("en")}.`;
  byId("distribution").textContent = words;
  byId("histogram").replaceChildren(picture(found, interval, words), make("p", { class: "note" },
    `Queries by difference; the vertical line is the mean${interval ? `, the band its ${confidence} interval` : ", which has no interval for this pair"}.`
    + (found.ties ? ` The ${count(found.ties, "query", "queries")} without a difference are not drawn.` : "")));
}

function picture(found, interval, words) {
  const [width, height, left, right, top, bottom] = [720, 220, 44, 12, 12, 42];
  const most = Math.max(1, ...found.counts);
  const x = (value) => left + (value / found.reach + 1) / 2 * (width - left - right);
  const y = (value) => height - bottom - value / most * (height - top - bottom);
  const step = (width - left - right) / BINS;
  const parts = [draw("title", {}, "Distribution of per-query differences"), draw("desc", {}, words)];
  for (const value of [...new Set([0, Math.round(most / 2), most])]) {
    parts.push(draw("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid" }));
    parts.push(draw("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end", class: "tick" }, value.toLocaleString("en")));
  }
  const ends = (interval || []).map((value) => x(Math.max(-found.reach, Math.min(found.reach, value))));
  if (interval) parts.push(draw("rect", { x: ends[0], width: Math.max(1, ends[1] - ends[0]), y: top, height: height - top - bottom, class: "reach" }));
  found.counts.forEach((value, place) => {
    if (!value) return;
    const from = (place / BINS * 2 - 1) * found.reach;
    const hint = `${count(value, "query", "queries")} from ${signed(from)} to ${signed(from + 2 * found.reach / BINS)}`;
    parts.push(draw("rect", {
      x: left + place * step + .5, width: step - 1, y: y(value), height: y(0) - y(value), class: place < BINS / 2 === lowerIsBetter() ? "bin-win" : "bin-loss",
    }, draw("title", {}, hint)));
  });
  if (found.mean !== null) parts.push(draw("line", { x1: x(found.mean), x2: x(found.mean), y1: top, y2: height - bottom, class: "mean" }));
  for (const share of [-1, -.5, 0, .5, 1]) {
    const anchor = share === 1 ? "end" : "middle";
    parts.push(draw("text", { x: x(share * found.reach), y: height - bottom + 16, "text-anchor": anchor, class: "tick" }, signed(share * found.reach)));
  }
  parts.push(draw("text", { x: left, y: height - 6, class: "label" }, `← ${lowerIsBetter() ? "better" : "worse"}`));
  parts.push(draw("text", { x: width - right, y: height - 6, "text-anchor": "end", class: "label" }, `${lowerIsBetter() ? "worse" : "better"} →`));
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Distribution of per-query differences. " + words }, parts);
}

function startDistribution() {
  if (!comparing()) return;
  for (const [id, name] of [["one", "one"], ["other", "other"]]) {
    byId(id).addEventListener("change", () => choose({ [name]: Number(byId(id).value) }));
  }
  byId("swap").addEventListener("click", () => choose({ one: state.other, other: state.one }));
  whenChosen(() => {
    byId("one").value = String(state.one);
    byId("other").value = String(state.other);
    showDistribution();
  });
}
