"""Indexes of retrievers that answer in process: built once from the documents, and kept by their content."""
