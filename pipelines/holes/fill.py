"""Fill the holes of a finished run: a file of judgements by people and judge, with an audit of the judge."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rankbeam.pipelines.holes.effects import Effect, effects_of, reversed_pairs
from rankbeam.pipelines.holes.grades import human_grades, judge_grades, scale_of
from rankbeam.pipelines.results.audit import Audit, Pair, audit_of
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.screen import WHOLE, Screen
from rankbeam.pipelines.show.tabular import Table
from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.formats.recognise import QRELS_HEADER
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.holes import HUMAN, LLM, MOST_AUDITED

FOLDER = "holes"
_MOST_NAMED = 10


@dataclass(frozen=True)
class FilledJudgements:
    """Summary of what was filled.

    Attributes:
        path: the written file of judgements.
        human: number of judgements by people.
        filled: number of judgements by the judge.
        without_text: number of graded texts whose document is not known any more.
        judge: judge, version of its model and hash of its prompt.
        scale: for each grade of the judge, the grade that was written.
        audit: comparison of judge and people.
        effects: means before and after.
    """

    path: str
    human: int
    filled: int
    without_text: int
    judge: Mapping[str, str | None]
    scale: Sequence[int]
    audit: Audit
    effects: Sequence[Effect]

    @property
    def warnings(self) -> list[str]:
        """Reasons for caution with the means."""
        warnings = list(self.audit.warnings)
        if self.without_text:
            warnings.append(f"{self.without_text:,} graded texts belong to no document in the corpus or the rankings")
        pairs = list(reversed_pairs(self.effects))
        for metric, better, worse in pairs[:_MOST_NAMED]:
            warnings.append(f"{metric}: {better} is better than {worse} by people, and worse with the judge's grades")
        if len(pairs) > _MOST_NAMED:
            warnings.append(f"{len(pairs) - _MOST_NAMED:,} further pairs change their order")
        return warnings

    def as_text(self, screen: Screen = WHOLE) -> str:
        """For people."""
        audit = self.audit
        lines = [f"{self.path}: {self.human:,} judgements by people, {self.filled:,} by {self.judge['judge']}", ""]
        heading = ["metric", "configuration", "people", "judged only", "holes filled"]
        means = [
            [row.metric, row.configuration, *(f"{value:.4f}" for value in (row.human, row.judged_only, row.filled))]
            for row in self.effects
        ]
        if means:
            lines += [screen.table(Table(heading, means, left=2)), ""]
        if audit.pairs:
            lines.append(audit.as_text())
            columns = ["people", *(f"judge {grade}" for grade in audit.grades)]
            counts = [
                [str(grade), *map(str, row)] for grade, row in zip(audit.grades, audit.counts, strict=True) if any(row)
            ]
            lines += ["", screen.table(Table(columns, counts))]
        return "\n".join(lines).rstrip()


def fill(run: Results, grades: str | None = None, audit: int = MOST_AUDITED) -> FilledJudgements:
    """Write the judgements of people, and the judge's grades of documents that people did not judge.

    Args:
        run: finished run with the metric ContextRelevance@k, whose judge graded the first k documents.
        grades: worth of the judge's grades 0 to 3, such as "0,0,1,2"; see `scale_of`.
        audit: number of documents that both graded and that audit the judge, at most.
    """
    if is_table(run.output):
        raise InputError("holes are filled for runs in folders only", path=run.output)
    path, human = human_grades(run)
    scale = scale_of(human, grades)
    graded = judge_grades(run)
    if not graded.by_text:
        advice = "add ContextRelevance@10 to the metrics, so that the judge grades the first 10 documents"
        raise InputError(f"has no grades of documents by a judge; {advice}", path=run.output)
    on_scale = {pair: scale[grade] for pair, grade in graded.by_pair.items()}
    filled = {pair: float(grade) for pair, grade in on_scale.items() if human.get(pair, -1.0) < 0}
    unchanged = {pair: grade for pair, grade in human.items() if pair not in filled}
    folder = files.join(run.output, FOLDER)
    files.make_folder(folder)
    target = files.join(folder, f"{run.run_id}.tsv")
    result = FilledJudgements(
        target,
        len(unchanged),
        len(filled),
        graded.without_text,
        graded.judge,
        scale,
        audit_of(human, on_scale, audit),
        effects_of(run, human, filled),
    )
    files.write(target, _lines(unchanged, filled).encode())
    facts = {**run.identity(), "qrels": path, **asdict(result)}
    facts["audit"] |= {"grades": list(result.audit.grades), "warnings": result.audit.warnings}
    files.write(files.join(folder, f"{run.run_id}.json"), json.dumps(facts, ensure_ascii=False, indent=1).encode())
    return result


def _lines(human: Mapping[Pair, float], filled: Mapping[Pair, float]) -> str:
    rows = [(*pair, f"{grade:.15g}", HUMAN) for pair, grade in sorted(human.items())]
    rows += [(*pair, f"{grade:.15g}", LLM) for pair, grade in sorted(filled.items())]
    wrong = next((row[0] for row in rows if any(mark in name for name in row[:2] for mark in "\t\r\n")), None)
    if wrong is not None:
        raise InputError(f"query {wrong!r}: an id with a tab or a line end cannot be written to a file of judgements")
    return "".join("\t".join(row) + "\n" for row in (QRELS_HEADER, *rows))
