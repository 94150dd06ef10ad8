"""The stand-ins, through the client libraries that rankbeam uses: they do as a test tells them, and count right."""

import httpx
from support.standin_clients import ANSWERS, hits, post, question, rag, scored_documents, search
from support.standins import serve

# What is found


def test_the_rag_engine_gives_what_a_test_wrote_down() -> None:
    with serve("rag_engine", answers=ANSWERS) as server:
        (answer,) = rag(server, question(top_k=2))
    assert scored_documents(answer) == [("gs://bucket/a.txt", 0.1), ("gs://bucket/b.txt", 0.2)]
    assert [(context.text, context.source_display_name) for context in answer.contexts.contexts] == [
        ("A", "a.txt"),
        ("Text of b.", "b.txt"),
    ]


def test_thresholds_are_strict() -> None:
    with serve("rag_engine", answers={"who": [{"id": "a", "score": 0.25}, {"id": "b", "score": 0.5}]}) as server:
        filters = [
            {"vector_distance_threshold": 0.5},
            {"vector_distance_threshold": 0.75},
            {"vector_similarity_threshold": 0.5},
            {"vector_similarity_threshold": 0.25},
        ]
        answers = rag(server, *(question(top_k=5, filter=value) for value in filters))
    assert [len(scored_documents(answer)) for answer in answers] == [1, 2, 1, 2]


def test_a_reranker_turns_the_order_and_leaves_the_scores() -> None:
    with serve("rag_engine", answers=ANSWERS) as server:
        rerankers = [{"rank_service": {"model_name": "m"}}, {"llm_ranker": {"model_name": "m"}}]
        for answer in rag(server, *(question(top_k=2, ranking=ranking) for ranking in rerankers)):
            assert scored_documents(answer) == [("gs://bucket/b.txt", 0.2), ("gs://bucket/a.txt", 0.1)]


def test_fewer_made_results_are_the_first_of_more() -> None:
    with serve("rag_engine") as server:
        few, many, other = rag(server, question("x", top_k=5), question("x", top_k=100), question("y", top_k=5))
    assert scored_documents(few) == scored_documents(many)[:5] != scored_documents(other)
    scores = [score for _, score in scored_documents(many)]
    assert scores == sorted(scores)
    assert len(set(scored_documents(many))) == len({uri for uri, _ in scored_documents(many)}) == 100


def test_a_small_corpus_is_found_whole_and_once() -> None:
    with serve("http", documents=["a", "b", "c", "d"]) as server:
        for query in "pqrst":
            assert sorted(doc_id for doc_id, _ in hits(post(server, query))) == ["a", "b", "c", "d"]


def test_http_answers_post_and_get() -> None:
    answers = {"who": [{"id": "a", "score": 2.0, "text": "A"}, {"id": "b", "score": 1.0}]}
    with serve("http", answers=answers) as server:
        posted = post(server)
        response = httpx.get(f"{server.url}/search", params={"q": "who", "k": 1}, headers={"X-Key": "k"})
        elsewhere = httpx.get(f"{server.url}/elsewhere")
        seen = server.stats().requests
    assert hits(posted) == [("a", 2.0), ("b", 1.0)]
    assert response.json()["hits"]["hits"][0]["_source"]["text"] == "A"
    assert (len(hits(response)), elsewhere.status_code) == (1, 404)
    assert [request["query"] for request in seen] == ["who", "who"]
    assert seen[1]["headers"]["x-key"] == "k"


def test_vertex_search_finds_documents_in_pages() -> None:
    answers = {"who": [{"id": "a", "score": 0.9, "text": "A"}, {"id": "b", "score": 0.8}, {"id": "c", "score": 0.7}]}
    with serve("vertex_search", answers=answers) as server:
        first = search(server, query="who", page_size=2)
        one_page = server.stats()
        second = search(server, query="who", page_size=2, page_token=first.next_page_token)
        both = server.stats()
    assert [(result.id, result.document.id) for result in first.results] == [("a", "a"), ("b", "b")]
    assert first.results[0].document.derived_struct_data["link"] == "gs://bucket/a.txt"
    assert [result.id for result in second.results] == ["c"]
    assert (bool(first.next_page_token), second.next_page_token) == (True, "")
    assert (one_page.second_pages, both.second_pages) == (0, 1)


def test_vertex_search_finds_chunks_with_their_neighbours() -> None:
    spec = {"search_result_mode": "CHUNKS", "chunk_spec": {"num_previous_chunks": 2, "num_next_chunks": 1}}
    answers = {"who": [{"id": "a", "score": 0.9, "text": "A", "title": "T"}]}
    with serve("vertex_search", answers=answers) as server:
        (result,) = search(server, query="who", content_search_spec=spec).results
    chunk = result.chunk
    assert chunk.name.endswith("/branches/0/documents/a/chunks/c3")
    assert (chunk.content, chunk.document_metadata.uri, chunk.document_metadata.title) == (
        "A",
        "gs://bucket/a.txt",
        "T",
    )
    assert [neighbour.id for neighbour in chunk.chunk_metadata.previous_chunks] == ["c1", "c2"]
    assert [neighbour.id for neighbour in chunk.chunk_metadata.next_chunks] == ["c4"]


def test_what_a_client_sends_can_be_seen() -> None:
    with serve("rag_engine") as server:
        rag(server, question(top_k=3, filter={"metadata_filter": "year > 2000"}))
        (request,) = server.stats().requests
    config = request["message"]["query"]["rag_retrieval_config"]
    assert config == {"top_k": 3, "filter": {"metadata_filter": "year > 2000"}}
    assert request["metadata"]["x-goog-request-params"] == "parent=projects/p/locations/l"
