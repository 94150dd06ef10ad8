"""Management of earlier work: ledgers, corpora, indexes, jobs and old runs."""
