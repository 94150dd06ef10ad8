"""The parts of a generated benchmark: spans, facts, questions, evidence, votes."""
