"""Search in process: words of texts, postings, weights, latent semantics, and the nearest vectors."""
