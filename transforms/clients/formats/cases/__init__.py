"""Cases: rows of other tools' files, each a question with its answer, contexts, reference answer and judgements.

file ──► objects (CSV, JSON, Parquet) ──► tool recognised by its keys ──► cases ──► queries, judgements, answers
"""
