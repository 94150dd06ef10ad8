"""`generate:`, `judge:` and replayed answers: components of a configuration, their identity, and every mistake."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.experiments import experiment, install, load
from support.inputs import write

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import parse_experiment
from rankbeam.transforms.clients.parameters import entry_points_of
from rankbeam.transforms.records.calls.quota import Prices
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.stages import Judging

SERVICES = (
    "services: {m: {type: remote_model, model: one}, n: {type: remote_model, model: two}, o: {type: offline_model}}\n"
)
NEAR = "retriever: {type: near}, top_k: 10"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    install(tmp_path, monkeypatch)
    write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "a", "language": "de"}\n')
    write(tmp_path / "answer.txt", "Answer in {language}, as {{a: b}.\n---\n{contexts}\n{query}\n")
    write(tmp_path / "answers.jsonl", '{"query_id": "q1", "answer": "yes"}\n')
    yield tmp_path
    entry_points_of.cache_clear()


def parsed(folder: Path, text: str) -> Experiment:
    return parse_experiment(text, str(folder / "e.yaml"))


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parsed(folder, text)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).split("\n")]


def ids(folder: Path, text: str) -> dict[str, str]:
    return {
        configuration.name: configuration.config_id for configuration in parsed(folder, text).evaluation.configurations
    }


def generating(generate: str, more: str = "") -> str:
    return experiment({"plain": NEAR, "rag": f"{NEAR}, generate: {generate}"}, SERVICES + more)


def test_a_configuration_that_answers_shares_the_ranking_of_one_that_does_not(folder: Path) -> None:
    loaded = parsed(folder, generating("{service: m, contexts: 3, template: answer.txt}"))
    plain, rag = loaded.evaluation.configurations
    assert (plain.source, rag.source, len(loaded.sources)) == (0, 0, 1)
    assert plain.generation is None
    assert plain.config_id == load(folder, experiment({"plain": NEAR})).evaluation.configurations[0].config_id
    assert rag.config_id != plain.config_id
    assert rag.generation is not None
    assert (rag.generation.service, rag.generation.contexts, rag.generation.max_output_tokens) == ("m", 3, 1024)
    assert rag.generation.template == (folder / "answer.txt").read_text()


def test_the_identity_is_the_model_and_the_text_of_the_template(folder: Path) -> None:
    """Not what the experiment or the file system calls them."""
    one = ids(folder, generating("{service: m, template: answer.txt}"))
    write(folder / "copy.txt", (folder / "answer.txt").read_text())
    text = generating("{service: renamed, template: copy.txt}").replace("{m: {", "{renamed: {")
    assert ids(folder, text) == one
    write(folder / "copy.txt", (folder / "answer.txt").read_text().replace("Answer", "Reply"))
    assert ids(folder, text)["rag"] != one["rag"]


@pytest.mark.parametrize("change", ["service: n", "contexts: 4", "temperature: 0.5", "seed: 1", "samples: 2",
                                    "thinking: 0", "max_output_tokens: 99", "without_contexts: true"])  # fmt: skip
def test_the_identity_depends_on_every_parameter(folder: Path, change: str) -> None:
    other = "{service: m}" if change != "service: n" else ""
    text = generating(other.replace("}", f", {change}}}") or f"{{{change}}}")
    assert ids(folder, text)["rag"] != ids(folder, generating("{service: m}"))["rag"]


def test_a_grid_sweeps_what_some_component_has_and_repeats_no_other_configuration(folder: Path) -> None:
    more = "grid: {contexts: [3, 5], generate.temperature: [0, 1], region: [r1, r2]}\n"
    experiment = parsed(folder, generating("{service: m}", more))
    assert [configuration.name for configuration in experiment.evaluation.configurations] == [
        "plain:region=r1",
        "plain:region=r2",
        *(
            f"rag:contexts={contexts},generate.temperature={temperature},region={region}"
            for contexts in (3, 5)
            for temperature in (0, 1)
            for region in ("r1", "r2")
        ),
    ]
    generations = [configuration.generation for configuration in experiment.evaluation.configurations[2:]]
    assert [(some.contexts, some.temperature) for some in generations if some is not None][::2] == [
        (3, 0.0), (3, 1.0), (5, 0.0), (5, 1.0),
    ]  # fmt: skip
    assert len(experiment.sources) == 2  # regions; answers are made of the same rankings


def test_services_that_are_used_have_pools(folder: Path) -> None:
    text = experiment(
        {"a": f"{NEAR}, generate: {{service: a}}", "b": f"{NEAR}, generate: {{service: b, seed: 1}}", "c": NEAR},
        "services: {a: {type: remote_model, model: x}, b: {type: remote_model, model: x, api_key: other}, "
        "c: {type: remote_model, model: y}, unused: {type: remote_model, model: z}, o: {type: offline_model}}\n"
        "judge: {service: c, embeddings: o}\n"
        "quotas: {b: {tokens_per_minute: 10_000, price_per_million: {input: 1, output: 4}}, "
        "remote_model: {requests_per_minute: 30}}\n",
    )
    loaded = parsed(folder, text)
    assert {name: service.pool for name, service in loaded.calls.services.items()} == {
        "a": "a",
        "b": "a",
        "c": "c",
        "o": "o",
    }
    assert set(loaded.calls.pools) == {"near", "a", "c", "o"}
    shared = loaded.calls.pools["a"]
    assert (shared.requests_per_minute, shared.tokens_per_minute, shared.prices) == (60, 10_000, Prices(1, 1, 4))
    assert loaded.calls.pools["c"].requests_per_minute == 30
    assert loaded.calls.accounts["a"] == "remote_model p x"


GATEWAY = 'g: {type: openai, model: m-001, base_url: "http://gateway:8000/v1", api_key: "${env:GATEWAY_KEY}"'


def test_settings_of_a_service_identify_configurations_where_they_are_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "x")
    ids = []
    for more in ("", ", temperature: 1", ", reasoning_effort: low", ", extra_body: {top_p: 0.5}", ", allow_http: true"):
        text = experiment({"a": f"{NEAR}, generate: {{service: g}}"}, f"services: {{{GATEWAY}{more}}}}}\n")
        loaded = parsed(folder, text)
        ids.append(loaded.evaluation.configurations[0].config_id)
        warnings = [warning for warning in loaded.evaluation.warnings() if "without encryption" in warning]
        assert len(warnings) == (0 if "allow_http" in more else 1)
    assert ids[0] == ids[4] == "e5a96d98dd3d"
    assert len(set(ids)) == 4


def test_a_temperature_is_set_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "x")
    text = experiment(
        {"a": f"{NEAR}, generate: {{service: g, temperature: 0}}"}, f"services: {{{GATEWAY}, temperature: 1}}}}\n"
    )
    with pytest.raises(InputError, match="temperature: services: g sets a temperature, too; keep one"):
        parsed(folder, text)


def test_a_judge_and_a_limit_of_cost(folder: Path) -> None:
    write(folder / "mine" / "grade.txt", "{query} {context}")
    more = "judge: {service: m, prompts: mine, embeddings: n}\nmax_cost: 20\n"
    more += "quotas: {near: {price_per_1000: 1}, remote_model: {price_per_million: {input: 1, output: 4}}}\n"
    loaded = parsed(folder, experiment({"a": NEAR}, SERVICES + more))
    assert loaded.judging == Judging(("m",), "n", repeat_share=0.1, prompts=f"{folder}/mine")
    assert (loaded.calls.max_cost, set(loaded.calls.services)) == (20, {"m", "n"})


def test_replayed_answers_are_a_configuration_without_a_retriever(folder: Path) -> None:
    loaded = parsed(folder, experiment({"prod": "answers: {type: replay, path: answers.jsonl}", "near": NEAR}))
    prod, _ = loaded.evaluation.configurations
    assert json.loads(prod.parameters) == {
        "answers": {"type": "replay", "path": "answers.jsonl", "config": None}, "top_k": None,
    }  # fmt: skip
    assert loaded.sources[0].retriever.parameters.inputs() == {"path": f"{folder}/answers.jsonl"}
    assert (set(loaded.remote), set(loaded.local)) == ({1}, set())


MISTAKES = [
    (generating("{contexts: 3}"), "e.yaml:5: configurations[1].generate.service: is missing"),
    (generating("{service: mm}"),
     "e.yaml:5: configurations[1].generate.service: services: has no 'mm'; did you mean 'm'?"),
    (generating("{service: m, context: 3}"),
     "e.yaml:5: configurations[1].generate.context: unknown key; did you mean 'contexts'?"),
    (generating("{service: m, contexts: 0}"),
     "e.yaml:5: configurations[1].generate.contexts: must be at least 1, found 0"),
    (generating("{service: m, template: no.txt}"),
     "e.yaml:5: configurations[1].generate.template: {folder}/no.txt: no such file"),
    (generating("{service: m}", "grid: {contexts: [3, few]}\n"),
     "e.yaml:9: grid.contexts: must be a whole number, found 'few'"),
    (generating("{service: m}", "grid: {generate.service: [m, k]}\n"),
     "e.yaml:9: grid.generate.service: services: has no 'k'; valid are: m, n, o"),
    (generating("{service: m}", "grid: {generate.contextz: [3]}\n"),
     "e.yaml:9: grid.generate.contextz: no configuration has this parameter; did you mean 'generate.contexts'?"),
    (experiment({"a": NEAR}, f"{SERVICES}judge: {{service: mm}}\n"),
     "e.yaml:8: judge.service: services: has no 'mm'; did you mean 'm'?"),
    (experiment({"a": NEAR}, f"{SERVICES}judge: [{{service: m}}]\n"),
     "e.yaml:8: judge.service: list the names of services, judge: [ONE, OTHER]; further keys apply to all judges"),
    (experiment({"a": NEAR}, "judge: {service: m}\n"),
     "e.yaml:7: judge.service: services: has no 'm'; name the model there: {NAME: {type: …}}"),
    (experiment({"a": NEAR}, "max_cost: -1\n"),
     "e.yaml:7: max_cost: must be at least 0, found -1"),
    (experiment({"a": NEAR}, "max_cost: 1\n"),
     "e.yaml:7: max_cost: needs the price of every call; give quotas: {near: {price_per_1000}}"),
    (experiment({"a": NEAR}, "quotas: {near: {price_per_million: {input: 1, output: 1}}}\nmax_cost: 1\n"),
     "e.yaml:8: max_cost: needs the price of every call, and no reply of near reports tokens; give its usage:, or "),
    (generating("{service: m}", "quotas: {near: {price_per_1000: 1}}\nmax_cost: 1\n"),
     "e.yaml:10: max_cost: needs the price of every call; give quotas: {m: {price_per_million: {input: "),
    (experiment({"a": f"{NEAR}, answers: {{type: replay, path: answers.jsonl}}"}),
     "e.yaml:4: configurations[0]: has existing answers, and keys that would generate others; keep one"),
    (experiment({"a": "top_k: 5"}),
     "e.yaml:4: configurations[0]: has neither a retriever nor existing answers; add one of them"),
    (experiment({"a": "answers: {type: reply, path: answers.jsonl}"}),
     "e.yaml:4: configurations[0].answers.type: unknown type 'reply'; did you mean 'replay'?"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_a_mistake(folder: Path, text: str, expected: str) -> None:
    (problem,) = problems(folder, text)
    assert problem.startswith(expected.replace("{folder}", str(folder)))


def test_a_name_that_two_components_have_is_written_with_its_component(folder: Path) -> None:
    write(folder / "site" / "seeded.py", "from rankbeam import RetrieverParameters\n"
          "class Seeded(RetrieverParameters):\n    seed: int = 0\n"
          "    def open(self, corpus): ...\n")  # fmt: skip
    points = folder / "site" / "services-1.0.dist-info" / "entry_points.txt"
    write(points, points.read_text().replace("[rankbeam.retrievers]", "[rankbeam.retrievers]\nseeded = seeded:Seeded"))
    entry_points_of.cache_clear()
    text = experiment({"b": "retriever: {type: seeded}, generate: {service: m}"}, f"{SERVICES}grid: {{seed: [0, 1]}}\n")
    assert problems(folder, text) == [
        "e.yaml:8: grid.seed: several components of one configuration have it; write retriever.seed or generate.seed"
    ]
    loaded = parsed(folder, text.replace("grid: {seed", "grid: {retriever.seed"))
    assert [configuration.name for configuration in loaded.evaluation.configurations] == [
        "b:retriever.seed=0",
        "b:retriever.seed=1",
    ]


TEMPLATES = [
    ("{query}\n{contexts}\n{languag}\n",
     "t.txt:3: unknown variable {languag}; did you mean 'language'?"),
    ("{contexts}", "t.txt: has no {query}: the model would not see the question"),
    ("{query}", "t.txt: has no {contexts}; add them, or set without_contexts: true under generate:"),
    ("{query}\n{contexts} {", "t.txt:2: a brace does not begin a {variable}; write {{ for a literal brace"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "expected"), TEMPLATES)
def test_a_mistake_in_a_template(folder: Path, template: str, expected: str) -> None:
    write(folder / "t.txt", template)
    (problem,) = problems(folder, generating("{service: m, template: t.txt}"))
    assert expected in problem


def test_a_model_may_be_asked_without_contexts(folder: Path) -> None:
    write(folder / "t.txt", "{query}")
    assert parsed(folder, generating("{service: m, template: t.txt, without_contexts: true}"))
