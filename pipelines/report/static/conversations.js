// The conversation of a query: all its turns in order, each with its answer and a link.
const conversations = remembered(() => {
  const turns = new Map();
  state.data.ids.forEach((id, query) => {
    const own = state.data.attributes[id] || {};
    if (own.conversation === undefined) return;
    if (!turns.has(own.conversation)) turns.set(own.conversation, []);
    turns.get(own.conversation).push({ query: query, turn: Number(own.turn || messagesOf(own.history).filter((one) => one.role === "user").length + 1) });
  });
  for (const own of turns.values()) own.sort((a, b) => a.turn - b.turn || a.query - b.query);
  return turns;
});

function messagesOf(text) {
  let messages;
  try { messages = JSON.parse(text || "null"); } catch { messages = null; }
  return Array.isArray(messages) && messages.every((message) => message && typeof message.text === "string") ? messages : [];
}

function turnLink(query, label) {
  const link = make("a", { href: address(query) }, label);
  link.addEventListener("click", (event) => { event.preventDefault(); showQuery(query); });
  return link;
}

function turnAnswer(query) {
  const answer = answerOf(state.one, query);
  if (answer && answer.text !== null) return make("bdi", {}, answer.text);
  if (answer) return make("span", { class: "bad" }, answer.status.replace("_", " "));
  const status = statusOf(state.one, query, state.metric);
  return make("span", { class: "quiet" }, status === "ok" ? "no answer in this page" : status);
}

function conversation(query) {
  const own = state.data.attributes[state.data.ids[query]] || {};
  const turns = conversations().get(own.conversation) || [];
  if (turns.length < 2) return [];
  const place = turns.findIndex((one) => one.query === query);
  const rows = turns.map((one) => {
    const question = (state.data.texts && state.data.texts[one.query]) || state.data.ids[one.query];
    const here = one.query === query;
    const text = make("bdi", {}, question);
    return make("li", { value: one.turn, class: here ? "here" : "", "aria-current": here ? "true" : "false" }, [
      make("p", {}, [make("b", {}, "user: "), here ? text : turnLink(one.query, text)]),
      make("p", {}, [make("b", {}, state.data.configurations[state.one] + ": "), turnAnswer(one.query)]),
      make("p", { class: "note" }, `${state.data.metrics[state.metric]} ${number(valuesOf(state.metric, state.one)[one.query])}`)]);
  });
  const beside = [[place - 1, "previous turn"], [place + 1, "next turn"]].filter(([at]) => turns[at])
    .flatMap(([at, label]) => [turnLink(turns[at].query, label), " "]);
  return [make("details", { class: "conversation", open: "" }, [
    make("summary", {}, ["Conversation ", make("bdi", {}, own.conversation), `, ${count(turns.length, "turn", "turns")} in this page`]),
    make("ol", {}, rows), make("p", {}, beside)])];
}
