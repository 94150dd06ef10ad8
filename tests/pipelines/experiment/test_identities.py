"""Identities that never change: a `config_id` compares runs of different releases, a `content_key` finds paid answers.

The values were written down at the first release, commit 313c12e, and those of later types when these came. A test that
fails here means that results can no longer be compared with older ones, or that every answer in every ledger is paid
for again: mend the code, not the value.
"""

from pathlib import Path

import pytest
from support.inputs import beir_qrels, json_texts, trec_run, write

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.plug_ins import entry_points_of

RAG = "corpus: projects/p/locations/us-central1/ragCorpora/42"
SEARCH = "serving_config: projects/p/locations/global/collections/default_collection/engines/e/servingConfigs/s"
HTTP = "url: http://search.example.com/find, results: hits, id: id"

RETRIEVERS = {
    "bm25": "{type: bm25}",
    "bm25-all": "{type: bm25, k1: 0.9, b: 0.4, method: bm25+, delta: 0.7, stemming: german, stop_words: none, "
    "fields: [title]}",
    "tfidf": "{type: tfidf}",
    "lsa": "{type: lsa}",
    "dense": "{type: dense, vectors: v.parquet, query_vectors: v.parquet}",
    "run": "{type: run_file, path: old.run}",
    "rag": f"{{type: rag_engine, {RAG}}}",
    "rag-all": f"{{type: rag_engine, {RAG}, rag_file_ids: ['1', '2'], metadata_filter: 'a = \"b\"', "
    "rank_service: semantic-ranker-512, "
    "doc_id: {field: source_display_name, pattern: '(.*)[.]txt'}, lower_is_better: false, version: v2, quota: own}",
    "search": f"{{type: vertex_search, {SEARCH}}}",
    "search-all": f"{{type: vertex_search, {SEARCH}, mode: chunks, previous_chunks: 1, next_chunks: 2, filter: x, "
    "version: v2}",
    "http": f"{{type: http, {HTTP}}}",
    "http-all": f"{{type: http, {HTTP}, method: GET, score: score, text: body, lower_is_better: true, derive: false, "
    "params: {q: '{query}', k: '{top_k}'}, headers: {X-Tenant: a}, version: v2, quota: own}",
    "fused": "{type: fusion, parts: [bm25, run], weights: [1, 2]}",
}

OURS = {kind for kind, point in entry_points_of("rankbeam.retrievers").items() if point.value.startswith("rankbeam.")}

CONFIG_IDS = {
    "bm25": "b5ba9ad15224",
    "bm25:dialect=trec_eval": "a3ac61beadc7",
    "bm25-all": "dfeae05766ab",
    "bm25-all:dialect=trec_eval": "236f0d8c222e",
    "tfidf": "004395810c8f",
    "tfidf:dialect=trec_eval": "afb126d0356a",
    "lsa": "54c1b996099d",
    "lsa:dialect=trec_eval": "e4c1d1e3db01",
    "dense": "a9154bb503d1",
    "dense:dialect=trec_eval": "4f51b26884ab",
    "run": "7248bc18e258",
    "run:dialect=trec_eval": "c2771da9053e",
    "rag": "370448bc4ac5",
    "rag:dialect=trec_eval": "2284f4461706",
    "rag-all": "8230253b81bf",
    "rag-all:dialect=trec_eval": "719309b7dee8",
    "search": "fbb9b5b57ef0",
    "search:dialect=trec_eval": "270f8b348cde",
    "search-all": "990413e8ea4f",
    "search-all:dialect=trec_eval": "bf7239d25b9c",
    "http": "a7d4ffa53dda",
    "http:dialect=trec_eval": "dc37929e2b27",
    "http-all": "ef8e74d82abc",
    "http-all:dialect=trec_eval": "6dc8a283847e",
    "fused": "97dd7cc68805",
    "fused:dialect=trec_eval": "f262085258ea",
    "near": "d5833de5efba",
    "near:dialect=trec_eval": "ac3c65c5d698",
}

CONTENT_KEYS = {
    "rag": "4ec0926232f7d97b25d5b3241817585b",
    "rag-all": "88027ea81fc4afb35a1d7f9781eb4732",
    "search": "2462c27e3c76c5c9c5574c2e9870caa3",
    "search-all": "5fe57512c1448f57b3acfafda4d70051",
    "http": "2030155b5723d0c0a8023b34b734fba9",
    "http-all": "fef05d0c201a6a2361e45d802e4f11f8",
}


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """One configuration of every retriever, with few and with many parameters, in two dialects and two depths."""
    write(tmp_path / "qrels.tsv", beir_qrels([("q1", "d1", 1.0)]))
    write(tmp_path / "queries.jsonl", json_texts([("q1", "where is the café?")]))
    write(tmp_path / "corpus.jsonl", json_texts([("d1", "a document")]))
    write(tmp_path / "old.run", trec_run([("q1", "d1", 1.0)]))
    write(tmp_path / "v.parquet", "only its name counts")
    items = "\n".join(f"  - {{name: {name}, retriever: {text}, top_k: 10}}" for name, text in RETRIEVERS.items())
    near = f"  - {{name: near, retriever: {RETRIEVERS['rag']}, top_k: 10, vector_distance_threshold: 0.5}}"
    text = (
        "name: e\ndataset: {qrels: qrels.tsv, queries: queries.jsonl, corpus: corpus.jsonl}\n"
        f"configurations:\n{items}\n{near}\ndialects: [rankbeam, trec_eval]\nmetrics: [RR]\n"
        "quotas: {own: {requests_per_minute: 60}}\noutput: {path: out}\n"
    )
    return load_experiment(write(tmp_path / "e.yaml", text))


def test_every_type_of_retriever_is_pinned() -> None:
    assert {text.split("type: ")[1].split("}")[0].split(",")[0] for text in RETRIEVERS.values()} == OURS


def test_config_ids(experiment: Experiment) -> None:
    assert {
        configuration.name: configuration.config_id for configuration in experiment.evaluation.configurations
    } == CONFIG_IDS


def test_content_keys(experiment: Experiment) -> None:
    depth = SearchDepth(10, 0.5)
    names = {
        configuration.source: configuration.name.split(":")[0]
        for configuration in reversed(experiment.evaluation.configurations)
    }
    keys = {
        names[source]: configuration.keys(experiment.sources[source].retriever.kind, ["where is the café?"], depth)[0]
        for source, configuration in experiment.remote.items()
    }
    assert keys == CONTENT_KEYS
