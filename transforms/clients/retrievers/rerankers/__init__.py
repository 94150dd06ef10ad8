"""Rerankers: services that score the texts of a ranking for its query."""

from rankbeam.transforms.clients.parameters import Kind
from rankbeam.transforms.clients.retrievers.rerankers.base import Reranker

RERANKERS = Kind("reranker", "rankbeam.rerankers", Reranker, methods=("connect",))
"""The types of rerankers."""
