"""Numbers from models that are not language models are marked as such wherever they are shown."""

import re

from rankbeam.transforms.clients.models.base import MODELS

_WHO = re.compile(r"[(,](judge|embeddings)=([\w.-]+)[,)]")  # what is no metric, in a damaged table, has none


def offline_words(metric: str) -> str:
    """Name of the offline model that judged or embedded for a metric; "" for others.

    >>> offline_words("Faithfulness(judge=lexical)")
    'judge=lexical: word overlap, no language model'
    >>> offline_words("nDCG(gain=exp)@10"), offline_words("AnswerSimilarity(embeddings=e5)")
    ('', '')
    """
    models = [
        (option, name, MODELS.load(name).offline) for option, name in _WHO.findall(metric) if name in MODELS.types
    ]
    return "; ".join(f"{option}={name}: {offline}" for option, name, offline in models if offline)
