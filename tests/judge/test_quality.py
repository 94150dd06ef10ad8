"""Counts of a judge are the same however they are merged."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.judge.quality import Quality, StepQuality, notes_of
from rankbeam.transforms.judge.steps.claims import Claim
from rankbeam.transforms.judge.steps.grade import ContextGrade
from rankbeam.transforms.judge.steps.reading import ReasonedVerdict
from rankbeam.transforms.judge.steps.support import SupportVerdict
from rankbeam.transforms.records.judging.answers import EvaluatedItem, Judgement, KnownAnswer, Value
from rankbeam.transforms.records.reply import Tokens

VERDICT = {one.value: ReasonedVerdict(one, "") for one in SupportVerdict}
TOKENS = Tokens(10, 2, 3)


def judged(
    text: str, sample: int, verdict: object, *, is_repeat: bool = False, version: str | None = "m-1"
) -> Judgement:
    """A judgement of two claims by a text."""
    tokens = TOKENS if verdict is not None else Tokens()
    version = None if verdict is None else version
    return Judgement("support", text, sample, is_repeat, (text,), ("a", "b"), verdict, version, tokens)


def evaluated(*judgements: Judgement) -> EvaluatedItem:
    return EvaluatedItem("q", None, (), (), judgements)


def verdicts(*names: str) -> tuple[ReasonedVerdict[SupportVerdict], ...]:
    return tuple(VERDICT[name] for name in names)


JUDGEMENTS = st.builds(
    lambda text, verdict, version, is_repeat: judged(text, 0, verdict, version=version, is_repeat=is_repeat),
    st.sampled_from("xyz"),
    st.none() | st.tuples(*[st.sampled_from(sorted(VERDICT)).map(VERDICT.__getitem__)] * 2),
    st.sampled_from(["m-1", "m-2"]),
    st.booleans(),
)
QUALITIES = st.lists(JUDGEMENTS, max_size=6).map(lambda some: Quality.of(evaluated(*some)))


@given(QUALITIES, QUALITIES, QUALITIES)
def test_merging_is_associative_and_commutative_and_nothing_is_neutral(a: Quality, b: Quality, c: Quality) -> None:
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(b) == b.merge(a)
    assert Quality().merge(a) == a == a.merge(Quality())


def test_each_claim_of_a_repeated_item_is_compared() -> None:
    first = judged("x", 0, verdicts("supported", "not_stated"))
    second = judged("x", 1, verdicts("supported", "supported"), is_repeat=True)
    third = judged("x", 2, verdicts("supported", "contradicted"), is_repeat=True, version="m-2")
    counted = Quality.of(evaluated(first, second, third)).steps["support", ""]
    # the values of the second claim are 0, 1, 0: of variance 1/3; no pair of its verdicts is equal
    expected = StepQuality(1, 0, 1, 2, Fraction(1), Fraction(1, 3), {"m-1": 2, "m-2": 1}, Tokens(30, 6, 9))
    assert counted == expected


def test_a_failed_repeat_fails_no_item_and_a_failed_judgement_does() -> None:
    good, bad = judged("x", 0, verdicts("supported", "supported")), judged("x", 1, None, is_repeat=True)
    assert Quality.of(evaluated(good, bad)).steps["support", ""].failed == 0
    counted = Quality.of(evaluated(judged("x", 0, None), judged("y", 0, verdicts("supported", "supported"))))
    assert (counted.steps["support", ""].items, counted.steps["support", ""].failed) == (2, 1)
    assert counted.steps["support", ""].repeated == 0


def test_known_items_are_counted_apart() -> None:
    verdict, known = ContextGrade(2, ""), KnownAnswer("grade-13", "2")
    right = Judgement("grade", "k1", 0, False, ("x",), (), verdict, "m-2", TOKENS, known)
    failed = Judgement("grade", "k2", 0, False, ("y",), (), None, None, TOKENS, KnownAnswer("grade-14", "2"))
    counted = Quality.of(evaluated(right, failed))
    assert counted.steps == {("grade", ""): StepQuality(known={"grade-13": "2", "grade-14": None})}


def test_claims_without_a_place_and_doubtful_references_are_counted() -> None:
    claims = (Claim("a", 0, 1), Claim("b", None, None))
    judgement = Judgement("claims", "k", 0, False, ("t",), (), claims, "m-1", TOKENS)
    values = (Value(0, "ClaimF1", None, "reference_refuses"), Value(1, "ClaimF1", None, "reference_refuses"))
    quality = Quality.of(EvaluatedItem("q", "t", (), values, (judgement,)))
    both = quality.merge(quality).merge(Quality())
    assert (both.steps["claims", ""].claims, both.steps["claims", ""].unplaced, both.doubtful_references) == (4, 2, 2)
    assert [warning.partition(" ")[0] for warning in notes_of(both)] == ["reference", "2"]
    assert list(notes_of(Quality())) == []
