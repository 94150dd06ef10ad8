"""`rankbeam score` of runs whose scores are not numbers or whose ids have other types."""

import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hostile import NAMES, assert_agree, by_pytrec_eval, printed, put_qrels, ranking, refused, values_of
from support.inputs import run_table, write, write_table

# --- Scores ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("word", "line"),
    [
        *[("nan", 1), ("NaN", 2), ("-nan", 5000), ("inf", 1), ("-inf", 2), ("Infinity", 5000)],
        *[("1e999", 2), ("-1e999", 5000)],
    ],
)
def test_a_score_that_is_no_number_is_refused_in_a_trec_run(tmp_path: Path, word: str, line: int) -> None:
    lines = [f"{query} Q0 {doc} 1 {score} tag\n" for query, doc, score in ranking(5000)]
    query, _, doc, *_ = lines[line - 1].split()
    lines[line - 1] = f"{query} Q0 {doc} 1 {word} tag\n"
    run = write(tmp_path / "a.run", "".join(lines))
    message = refused(put_qrels(tmp_path / "a", [("q0", "d0", 1.0)]), run)
    assert message.startswith(f"rankbeam: {run}:{line}: the score is not a finite number\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("score", "line", "kind"),
    [
        *[(math.nan, 1, pa.float64()), (math.nan, 5000, pa.float32()), (math.inf, 2, pa.float64())],
        *[(-math.inf, 5000, pa.float64()), (None, 701, pa.float64()), (None, 1, pa.float32())],
    ],
)
def test_a_score_that_is_no_number_is_refused_in_parquet(
    tmp_path: Path, score: float | None, line: int, kind: pa.DataType
) -> None:
    rows = ranking(5000)
    scores = [number for _, _, number in rows]
    table = run_table(rows) | {"score": pa.array([*scores[: line - 1], score, *scores[line:]], kind)}
    run = str(tmp_path / "a.parquet")
    pq.write_table(pa.table(table), run, row_group_size=700)
    message = refused(put_qrels(tmp_path / "a", [("q0", "d0", 1.0)]), run)
    assert message.startswith(f"rankbeam: {run}:{line}: ")
    assert "score" in message


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        *[(pa.int64(), pa.int64()), (pa.int32(), pa.uint32()), (pa.uint8(), pa.int16())],
        *[(pa.float32(), pa.uint64()), (pa.float16(), pa.int8())],
    ],
    ids=str,
)
def test_whole_numbers_as_scores_and_ids(tmp_path: Path, kind: pa.DataType, ids: pa.DataType) -> None:
    draw = random.Random(4)
    rows = [(query, doc, draw.randrange(20)) for query in range(9, 12) for doc in draw.sample(range(7, 127), 50)]
    judgements = [(query, doc, float(draw.choice([0, 1, 2]))) for query in range(9, 12) for doc in range(0, 127, 3)]
    run = write_table(
        tmp_path / "a.parquet",
        {
            "query_id": pa.array([row[0] for row in rows], ids),
            "doc_id": pa.array([row[1] for row in rows], ids),
            "score": pa.array([row[2] for row in rows], kind),
        },
    )
    qrels = write_table(
        tmp_path / "qrels.parquet",
        {
            "query_id": pa.array([row[0] for row in judgements], ids),
            "doc_id": pa.array([row[1] for row in judgements], ids),
            "grade": pa.array([int(row[2]) for row in judgements], pa.int8()),
        },
    )
    named = [
        [(str(query), str(doc), float(number)) for query, doc, number in triples] for triples in (judgements, rows)
    ]
    ours = values_of(printed(qrels, run))
    assert set(ours) == {"9", "10", "11", "all"}
    assert_agree(ours, by_pytrec_eval(*named))  # 100 stands below 11, and 9 above both


@pytest.mark.parametrize(
    "ids", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_ids_of_other_string_types(tmp_path: Path, ids: pa.DataType) -> None:
    rows = [(f"q{number}", name, float(place % 3)) for number in range(4) for place, name in enumerate(NAMES)]
    judgements = [(query, doc, 1.0) for query, doc, _ in rows[::3]]
    table = run_table(rows)
    table = {name: column.cast(ids) if name.endswith("_id") else column for name, column in table.items()}
    ours = values_of(printed(put_qrels(tmp_path / "a", judgements), write_table(tmp_path / "a.parquet", table)))
    assert_agree(ours, by_pytrec_eval(judgements, rows))
