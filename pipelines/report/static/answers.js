// The answers to a query, side by side: every claim with its verdict and, on demand, what that rests on.
const VERDICTS = { supported: ["✓", "supported"], contradicted: ["✗", "contradicted"], not_stated: ["○", "not stated"] };

function answerOf(configuration, query) {
  const lists = state.data.answers && state.data.answers.lists[configuration];
  return (lists && lists[query]) || null;
}

function textAt(place) { return place === null ? "" : state.data.answers.texts[place]; }

// One support is enough, and a contradiction says more than silence; null where nothing was asked.
function verdictBy(verdicts) {
  const given = new Set(verdicts.filter(Boolean).map(([verdict]) => verdict));
  return ["supported", "contradicted", "not_stated"].find((verdict) => given.has(verdict)) || null;
}

// Of the contexts and the text beside them, such as the reference answer, the contexts decide where they were asked.
function verdictOf(claim) {
  const verdicts = claim[3];
  return verdictBy(verdicts.slice(0, -1)) || verdictBy(verdicts.slice(-1));
}

function badge(verdict) {
  const [sign, words] = VERDICTS[verdict] || ["–", "no verdict"];
  return make("span", { class: "badge badge-" + (verdict || "none") }, [make("span", { "aria-hidden": "true" }, sign + " "), words]);
}

// Positions are code points, and claims may overlap: a letter belongs to the first claim that begins before it.
function markedText(text, claims) {
  const letters = Array.from(text);
  const spans = claims.map((claim, number) => ({ from: claim[1], to: Math.min(claim[2], letters.length), number: number, claim: claim }))
    .filter((span) => span.from !== null && span.from < span.to).sort((a, b) => a.from - b.from);
  const parts = [];
  let place = 0;
  for (const span of spans) {
    if (span.to <= place) continue;
    const from = Math.max(place, span.from);
    parts.push(letters.slice(place, from).join(""));
    const verdict = verdictOf(span.claim);
    parts.push(make("mark", { class: "claim claim-" + (verdict || "none"), title: `claim ${span.number + 1}: ${(VERDICTS[verdict] || ["", "no verdict"])[1]}` }, [
      letters.slice(from, span.to).join(""), make("sup", {}, String(span.number + 1))]));
    place = span.to;
  }
  return parts.concat(letters.slice(place).join(""));
}

function evidence(answer, verdicts, beside) {
  const rows = verdicts.map((said, place) => {
    if (!said) return null;
    const isContext = place < answer.contexts.length;
    const [name, text] = isContext ? [answer.contexts[place][0], answer.contexts[place][1]] : [beside[0], beside[1]];
    return { verdict: said[0], reason: textAt(said[1]), label: isContext ? `[${place + 1}] ` : "", name: named(name), text: text };
  }).filter(Boolean);
  const deciding = rows.filter((row) => row.verdict !== "not_stated");
  const silent = rows.length - deciding.length;
  const shown = deciding.map((row) => make("div", { class: "evidence" }, [
    badge(row.verdict), " " + row.label, row.name, row.reason ? make("span", { class: "note" }, " · " + row.reason) : "",
    typeof row.text === "number" ? make("blockquote", {}, textAt(row.text)) : row.text ? make("blockquote", {}, row.text) : ""]));
  if (silent) shown.push(make("p", { class: "note" }, count(silent, "text does", "texts do") + " not state it."));
  return shown.length ? shown : [make("p", { class: "note" }, "The judge was not asked about it.")];
}

function claimList(answer, claims, beside) {
  return make("ol", { class: "claims" }, claims.map((claim) => make("li", {}, make("details", {}, [
    make("summary", {}, [badge(verdictOf(claim)), " " + claim[0]]), ...evidence(answer, claim[3], beside)]))));
}

function folded(summary, children) { return make("details", {}, [make("summary", {}, summary)].concat(children)); }

function named(id) { return id === null ? make("span", { class: "quiet" }, "(no doc_id)") : make("bdi", {}, id); }

function contextList(answer) {
  const rows = answer.contexts.map(([id, text, cited, given], place) => make("div", { class: "evidence" }, [
    `[${place + 1}] `, named(id), cited ? make("span", { class: "tag" }, "cited") : "",
    given === null ? "" : make("span", { class: "tag" }, "grade " + given), make("blockquote", {}, textAt(text))]));
  const left = answer.leftOut ? `, ${answer.leftOut} more left out` : "";
  return folded(count(answer.contexts.length, "context", "contexts") + left, rows);
}

function stepList(answer) {
  return answer.steps === null ? "" : folded(count(answer.steps.length, "call of a tool", "calls of tools"),
    [make("ol", {}, answer.steps.map((place) => make("li", {}, make("bdi", {}, textAt(place)))))]);
}

function price(answer) {
  const parts = [answer.model || "given answer"];
  if (answer.tokens[0] || answer.tokens[1]) parts.push(`${(answer.tokens[0] || 0).toLocaleString("en")} tokens in, ${(answer.tokens[1] || 0).toLocaleString("en")} out`);
  parts.push(answer.cost === null ? "no price known" : "cost " + String(Number(answer.cost.toPrecision(4))));
  return parts.join(" · ");
}

function shareOf(claims, verdicts) {
  const asked = claims.map((claim) => verdictBy(verdicts(claim[3]))).filter(Boolean);
  return asked.length ? `${asked.filter((verdict) => verdict === "supported").length} of ${asked.length}` : null;
}

function referencePart(answer) {
  const claims = answer.referenceClaims;
  const shares = [[shareOf(claims, (all) => all.slice(0, -1)), "in the contexts"], [shareOf(claims, (all) => all.slice(-1)), "in the answer"]]
    .filter(([share]) => share).map(([share, where]) => `${share} ${where}`);
  return claims.length ? folded("Claims of the reference answer" + (shares.length ? ": " + shares.join(", ") : ""),
    [claimList(answer, claims, ["the answer", answer.text])]) : "";
}

function answered(configuration, query) {
  const answer = answerOf(configuration, query);
  const head = make("h4", {}, make("bdi", {}, state.data.configurations[configuration]));
  if (!answer) return make("div", {}, [head, make("p", { class: "note" }, "No answer in this page; see the view answers_of_configuration in results.duckdb.")]);
  const text = answer.text === null ? make("p", { class: "bad" }, `${answer.status.replace("_", " ")}: ${answer.message || "no answer"}`)
    : make("p", { class: "answer" }, markedText(answer.text, answer.claims));
  const cited = answer.contexts.map(([id, , is], place) => (is ? `[${place + 1}] ${id}` : null)).filter(Boolean);
  const state_ = answer.text !== null && answer.status !== "ok" ? [make("p", { class: "bad" }, answer.status + (answer.message ? ": " + answer.message : ""))] : [];
  const kind = answer.kind ? [make("p", { class: "note" }, `The judge: ${answer.kind[0].replace("_", " ")}, relevance ${answer.kind[1]} of 3`
    + (answer.kind[2] === null ? "" : " · " + textAt(answer.kind[2])))] : [];
  return make("div", {}, [head, text, ...state_, ...kind,
    answer.claims.length ? claimList(answer, answer.claims, ["the reference answer", answer.reference]) : "",
    make("p", { class: "note" }, cited.length ? ["Cites ", make("bdi", {}, cited.join(", "))] : "Cites nothing."),
    contextList(answer), stepList(answer), referencePart(answer), make("p", { class: "note" }, price(answer))]);
}

function sidesShown() { return comparing() && state.one !== state.other ? [state.one, state.other] : [state.one]; }

function withReference(query) {
  return sidesShown().map((side) => answerOf(side, query)).find((answer) => answer && answer.reference !== null);
}

function referenceOf(query) {
  const reference = withReference(query);
  return reference ? textAt(reference.reference) : null;
}

// Both answers, under the reference answer.
function answers(query) {
  const sides = sidesShown();
  if (!sides.some((side) => answerOf(side, query))) return [];
  const reference = withReference(query);
  return [make("h4", {}, "Answers")].concat(
    reference ? [make("p", {}, [make("strong", {}, "Reference answer: "), textAt(reference.reference)])] : [],
    state.data.offline ? [make("p", { class: "note" }, state.data.offline)] : [],
    make("div", { class: "beside answers" }, sides.map((side) => answered(side, query))));
}
