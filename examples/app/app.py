"""Small RAG application in place of your own; it searches help articles and answers from them.

    python examples/app/app.py [PORT]

It answers POST /ask with {"question": …, "prompt": …}. Its language model is a rule: it quotes the sentences that share
the most words with the question, one if the prompt asks for one sentence, otherwise three.
"""

import json
import math
import re
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "helpdesk" / "corpus.jsonl"
PORT = 8765
CONTEXTS = 3


def words(text: str) -> list[str]:
    """The words of a text, without a plural's s."""
    return [word.rstrip("s") for word in re.findall(r"\w+", text.lower())]


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+", text) if part.strip()]


class Search:
    """Ranks articles by the rarity of the words that they share with a question."""

    def __init__(self, path: Path) -> None:
        self.articles = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.counts = [Counter(words(f"{article['title']} {article['text']}")) for article in self.articles]
        occurrences = Counter(word for count in self.counts for word in count)
        self.weights = {word: math.log(len(self.articles) / number) for word, number in occurrences.items()}

    def find(self, question: str) -> list[dict[str, str]]:
        """The best articles, best first."""
        query = set(words(question))

        def score(place: int) -> float:
            count = self.counts[place]
            return sum(self.weights[word] * count[word] / (count[word] + 1.5) for word in query if count[word])

        best = sorted(range(len(self.articles)), key=score, reverse=True)[:CONTEXTS]
        return [{"id": self.articles[place]["_id"], "text": self.articles[place]["text"]} for place in best]

    def answer(self, question: str, prompt: str, contexts: list[dict[str, str]]) -> str:
        """The sentences of the contexts that fit the question best, in their order."""
        query = set(words(question))
        candidates = [sentence for context in contexts for sentence in sentences(context["text"])]
        shared = [sum(self.weights.get(word, 0) for word in query & set(words(text))) for text in candidates]
        most = 1 if "one sentence" in prompt else 3
        best = sorted(range(len(candidates)), key=lambda place: shared[place], reverse=True)[:most]
        return " ".join(candidates[place] for place in sorted(best))

    def reply(self, question: str, prompt: str) -> dict[str, object]:
        """The answer with its sources and tokens."""
        contexts = self.find(question)
        answer = self.answer(question, prompt, contexts)
        shown = len(words(" ".join([prompt, question, *(context["text"] for context in contexts)])))
        return {
            "answer": answer,
            "sources": contexts,
            "usage": {"prompt_tokens": shown, "completion_tokens": len(words(answer))},
        }


class Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    protocol_version = "HTTP/1.1"
    search: Search

    def do_POST(self) -> None:
        """Answer a question, or say what is wrong with the request."""
        try:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            reply = self.search.reply(request["question"], request.get("prompt", ""))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.send(400, {"error": f'send {{"question": "…", "prompt": "…"}} ({type(error).__name__}: {error})'})
        else:
            self.send(200, reply)

    def send(self, status: int, value: object) -> None:
        """Send JSON."""
        content = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def main() -> None:
    """Serve until interrupted."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    Handler.search = Search(CORPUS)
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/ask", flush=True)  # noqa: T201
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")  # noqa: T201


if __name__ == "__main__":
    main()
