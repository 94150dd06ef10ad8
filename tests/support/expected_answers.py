"""Expected rows of the views of answers and verdicts, computed in plain Python from the rows of the tables."""

from collections.abc import Iterator, Mapping
from typing import Any

Row = dict[str, Any]
EVIDENCE = {"grade": "context", "answer_kind": "answer", "nugget_assign": "answer"}
"""Steps whose verdicts are always of one kind of text."""


class ExpectedAnswers:
    """The views of answers, contexts and verdicts; `run` and `configurations` are those of `Expected`."""

    tables: Mapping[str, list[Row]]
    configurations: Mapping[tuple[str, str], Row]

    def run(self, run_id: str) -> Row:
        """The columns of a run that most views have."""
        raise NotImplementedError

    def shown(self, table: str) -> Iterator[Row]:
        """The rows of finished runs."""
        raise NotImplementedError

    def answers_of_configuration(self) -> Iterator[Row]:
        queries = {
            (row["run_id"], row["config_id"], row["query_id"]): row["text"] for row in self.shown("query_metrics")
        }
        dropped = ("answer_hash", "reference_hash", "started_at")
        for row in self.shown("answers"):
            yield {name: value for name, value in row.items() if name not in dropped} | self._common(row) | {
                "query": queries.get((row["run_id"], row["config_id"], row["query_id"])),
                "contexts": len(row["contexts"]), "citations": len(row["citations"]),
                "position": self.configurations[row["run_id"], row["config_id"]]["position"],
            }  # fmt: skip

    def contexts_of_answer(self) -> Iterator[Row]:
        for row in self.shown("answers"):
            for context in row["contexts"]:
                yield self._common(row) | context | {
                    "query_id": row["query_id"], "sample": row["sample"],
                    "text": self._text(row["run_id"], context["text_hash"]),
                    "is_cited": context["doc_id"] in row["citations"],
                }  # fmt: skip

    def verdicts_of_configuration(self) -> Iterator[Row]:
        for row in self.shown("answers"):
            places = [
                (
                    "context",
                    context["text_hash"],
                    context["rank"],
                    context["doc_id"],
                    context["doc_id"] in row["citations"],
                )
                for context in row["contexts"]
            ]
            places += [(name, row[f"{name}_hash"], None, None, None) for name in ("answer", "reference")]
            for verdict in self.shown("verdicts"):
                if any(verdict[name] != row[name] for name in ("run_id", "query_id")):
                    continue
                for evidence, text_hash, rank, doc_id, is_cited in places:
                    if text_hash == verdict["right_hash"] and evidence == EVIDENCE.get(verdict["step"], evidence):
                        place = {"evidence": evidence, "rank": rank, "doc_id": doc_id, "is_cited": is_cited}
                        for verdict_row in self._verdict_rows(row, verdict, evidence):
                            yield self._common(row) | place | verdict_row

    def _verdict_rows(self, answer: Row, verdict: Row, evidence: str) -> Iterator[Row]:
        names = ("query_id", "step", "position", "verdict", "grade", "reason", "sample", "is_repeat", "judge",
                 "model_version", "prompt_hash", "item_id")  # fmt: skip
        common = {name: verdict[name] for name in names} | {
            "answer_sample": answer["sample"], "evidence_hash": verdict["right_hash"],
            "evidence_text": self._text(answer["run_id"], verdict["right_hash"]),
            "owner": None, "claim": self._text(answer["run_id"], verdict["left_hash"]),
            "quote_start": None, "quote_end": None,
        }  # fmt: skip
        if verdict["step"] != "support":
            yield common
            return
        for owner in ("answer", "reference"):
            for claim in self.shown("claims") if owner != evidence else ():
                same = all(claim[name] == verdict[name] for name in ("run_id", "query_id", "position", "items_hash"))
                if same and claim["text_hash"] == answer[f"{owner}_hash"]:
                    yield common | {"owner": owner, "claim": claim["text"]} | {
                        name: claim[name] for name in ("quote_start", "quote_end")
                    }  # fmt: skip

    def _common(self, row: Row) -> Row:
        name = self.configurations[row["run_id"], row["config_id"]]["name"]
        return self.run(row["run_id"]) | {"configuration": name, "config_id": row["config_id"]}

    def _text(self, run_id: str, text_hash: str | None) -> str | None:
        texts = (row for row in self.shown("texts") if (row["run_id"], row["text_hash"]) == (run_id, text_hash))
        return next((str(row["text"]) for row in texts), None)
