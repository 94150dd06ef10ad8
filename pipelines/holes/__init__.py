"""Holes in the judgements: documents that nobody judged, filled with grades of a judge, which people audit."""
