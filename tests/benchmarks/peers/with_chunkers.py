"""Chunkers of other libraries, measured in their own environment: prints CPU seconds per MB and chunks as JSON."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from chonkie import RecursiveChunker, SentenceChunker
from chunkers import measured, texts
from langchain_text_splitters import RecursiveCharacterTextSplitter
from semantic_text_splitter import TextSplitter

SIZE, OVERLAP = 512, 64

CUTTERS = {
    "langchain-text-splitters, recursive": RecursiveCharacterTextSplitter(
        chunk_size=SIZE, chunk_overlap=OVERLAP
    ).split_text,
    "chonkie, recursive": RecursiveChunker(chunk_size=SIZE, tokenizer="character"),
    "chonkie, sentences": SentenceChunker(chunk_size=SIZE, chunk_overlap=OVERLAP, tokenizer="character"),
    "semantic-text-splitter": TextSplitter(SIZE, OVERLAP).chunks,
}

sys.stdout.write(json.dumps(measured(CUTTERS, texts(float(sys.argv[1])))))
