"""Corpora that an experiment describes: what documents are cut into, and what is built of them."""
