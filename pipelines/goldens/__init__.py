"""Make a benchmark from documents: its file, its plan, its rounds, its output, and what people do with it."""
