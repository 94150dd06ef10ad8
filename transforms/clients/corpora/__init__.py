"""Corpora that an experiment describes: how documents are chunked, and what services build from them."""
