"""What a generated benchmark consists of: spans, facts, questions, evidence, votes."""
