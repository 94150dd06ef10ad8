"""Indexes of retrievers that answer in process: built once from the documents, and stored by their content."""
