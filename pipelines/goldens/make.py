"""Make a benchmark from start to end, and write its folder after every round."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.goldens.finish import (
    as_html,
    coverage,
    rejections,
    shortfalls,
    splits_of,
    warnings,
    without_refused,
    written_items,
)
from rankbeam.pipelines.goldens.folder import ABOUT, MANIFEST, GoldensFolder
from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.models import ContextModel
from rankbeam.pipelines.goldens.rounds import BenchmarkMaker, RoundProgress
from rankbeam.pipelines.run.folders import WORK, new_owner, sole_writer, work_folder
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.asking import prompt_names
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.goldens.planning import GoldensPlan
from rankbeam.transforms.goldens.records.items import CallRecord, Golden
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.reply import Tokens

_TOKENS = ("input", "cached", "output")


@dataclass(frozen=True)
class Outcome:
    """The result of making a benchmark."""

    items: int
    missing: int
    failed: int
    warnings: tuple[str, ...]
    calls: int
    hits: int
    cost: float | None  # None if a price is not known


def make(goldens: Goldens, plan: GoldensPlan, options: PipelineOptions) -> Outcome:
    """Make a benchmark; calls that the ledger answers are not paid for again."""
    with sole_writer(goldens.output, "goldens", "this benchmark", "output"):
        return _make(goldens, plan, options)


def _make(goldens: Goldens, plan: GoldensPlan, options: PipelineOptions) -> Outcome:
    folder = GoldensFolder(goldens.output)
    files.make_writable_folder(goldens.output)
    _refuse_other(folder, goldens)
    if not files.exists(folder.below(ABOUT)):  # a run that is killed before its first round leaves it
        folder.save_about({"name": goldens.name, "prompts": prompt_names(), "splits": []})
    files.delete(folder.below(MANIFEST))
    _write_documents(folder, plan)
    if plan.previous.reviews:
        folder.save_reviews({**plan.previous.reviews, **folder.reviews()}.values())
    owner = new_owner(goldens.calls)
    with work_folder(goldens.output, WORK, owner.run_id) as work:
        for progress in BenchmarkMaker(goldens, plan, options, owner, work).run():
            _write(folder, goldens, plan, progress)
    folder.publish()
    lacking = sum(shortfall["missing"] for shortfall in shortfalls(plan, progress))
    return Outcome(
        len(progress.accepted),
        lacking,
        len(progress.failed),
        (*warnings(goldens, plan, progress), *_lost_reviews(folder, plan, progress)),
        sum(use.calls for use in progress.usage),
        sum(use.ledger_hits for use in progress.usage),
        cost(goldens, progress),
    )


def _lost_reviews(folder: GoldensFolder, plan: GoldensPlan, progress: RoundProgress) -> Iterator[str]:
    """A warning about decisions on questions that are no longer made, mostly because a document has changed."""
    present = {*(item.item_id for item in progress.accepted), *plan.previous.refused}
    lost = sorted(folder.reviews().keys() - present)
    if lost and not progress.failed:  # failed questions may come back
        problem = f"reviewed questions that are no longer in the benchmark: {len(lost):,}, such as {lost[0]}"
        yield f"{problem}; documents or the plan have changed, and reviews.jsonl keeps the decisions"


def cost(goldens: Goldens, progress: RoundProgress) -> float | None:
    pools = goldens.calls.pools
    costs = [pools[use.pool].cost(use.calls, use.tokens) for use in progress.usage]
    known = [pool_cost for pool_cost in costs if pool_cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _refuse_other(folder: GoldensFolder, goldens: Goldens) -> None:
    """Refuse to replace other files, or a benchmark with another name, which people may have reviewed."""
    folder.refuse_foreign()
    about, manifest = (files.exists(folder.below(name)) for name in (ABOUT, MANIFEST))
    if not (folder.reviews() or manifest) or not about:  # a killed run leaves no manifest
        return
    name = folder.about()["name"]
    if name != goldens.name:
        raise InputError(f"holds the benchmark {name!r}; choose another output", path=folder.path)


def _write_documents(folder: GoldensFolder, plan: GoldensPlan) -> None:
    library = plan.library
    documents = (
        {"_id": one.id, "title": one.title, "text": one.text, "metadata": one.attributes} for one in library.documents
    )
    folder.write("corpus.jsonl", json_lines(documents))
    chunks = (
        {"_id": one.id, "doc_id": one.doc_id, "start": one.start, "end": one.end, "text": one.text}
        for one in library.passages
    )
    folder.write("chunks.jsonl", json_lines(chunks))


def _write(folder: GoldensFolder, goldens: Goldens, plan: GoldensPlan, progress: RoundProgress) -> None:
    written, rejected = written_items(goldens, plan, progress), rejections(progress)
    items, lacking = without_refused(plan, written), shortfalls(plan, progress)
    folder.save(written, rejected, about(goldens, plan, progress, lacking))
    counts = coverage(plan.library, items, rejected, lacking)
    folder.write("coverage.json", json_lines([counts]))
    folder.write("coverage.html", as_html(goldens.name, counts).encode())
    folder.write("costs.jsonl", json_lines(_costs(goldens, plan, items, progress)))
    folder.write("usage.json", json_lines(asdict(use) for use in progress.usage))


def about(
    goldens: Goldens, plan: GoldensPlan, progress: RoundProgress, lacking: list[dict[str, Any]]
) -> dict[str, Any]:
    """Describe the whole benchmark, without anything that differs between runs with the same calls."""
    plain = ContextModel(passages=goldens.context.passages)  # the only option in earlier releases
    return {
        "name": goldens.name,
        "rankbeam": version("rankbeam"),
        "complete": not progress.failed and not lacking,
        "wanted": goldens.planned.items,
        "seed": goldens.planned.seed,
        "rounds": progress.rounds,
        "writer": goldens.writer.parameters.identity(goldens.writer.kind),
        "checker": goldens.checker.parameters.identity(goldens.checker.kind),
        "offline": goldens.writer.parameters.offline is not None,
        "model_versions": _versions(progress),
        "prompts": prompt_names(),
        "context": goldens.context.passages if goldens.context == plain else goldens.context.model_dump(),
        "reviews": asdict(goldens.reviews),
        "pool": goldens.pool.documents,
        "pool_retrievers": [
            {"type": retriever.kind, **retriever.parameters.decisive()} for retriever in goldens.pool.retrievers
        ],
        "splits": sorted(set(splits_of(goldens, plan).values()) | set(goldens.split)),
        "shortfalls": lacking,
        **({"previous": len(plan.previous.goldens)} if goldens.previous else {}),
    }


def _versions(progress: RoundProgress) -> dict[str, list[str]]:
    versions = grouped((call.service, call.model_version) for call in _calls(progress))
    return {service: sorted({*names}) for service, names in sorted(versions.items())}


def _calls(progress: RoundProgress) -> Iterable[CallRecord]:
    for item in progress.items:
        yield from item.asked
    for pooled in progress.pooled.values():
        yield from pooled.asked


def _costs(
    goldens: Goldens, plan: GoldensPlan, items: Iterable[Golden], progress: RoundProgress
) -> Iterable[dict[str, Any]]:
    """Tokens and cost of every item and of each of its calls; facts shared by several items count for each item.

    They include all attempts, even failed ones, so unlike other files they may differ although the answers are equal.
    """
    for item in items:
        pooled = progress.pooled.get(item.made.item_id)
        written = () if item.made.item_id in plan.previous.goldens else item.made.asked  # paid for by that benchmark
        calls = [*written, *(() if pooled is None else pooled.asked)]
        costs = [_cost(goldens, call) for call in calls]
        known = [cost for cost in costs if cost is not None]
        yield {
            "query_id": item.made.item_id,
            "calls": len(calls),
            "tokens": {name: sum(getattr(call, name) for call in calls) for name in _TOKENS},
            "cost": round(sum(known), 9) if len(known) == len(costs) else None,
            "by_call": [
                {
                    "content_key": call.key,
                    "step": call.step,
                    "service": call.service,
                    "tokens": {name: getattr(call, name) for name in _TOKENS},
                    "cost": cost,
                }
                for call, cost in zip(calls, costs, strict=True)
            ],
        }


def _cost(goldens: Goldens, call: CallRecord) -> float | None:
    quota = goldens.calls.pools[goldens.calls.services[call.service].pool or ""]
    tokens = Tokens(call.input, call.cached, call.output)
    cost = quota.cost(1, tokens.in_batch() if call.in_batch else tokens)
    return None if cost is None else round(cost, 9)
