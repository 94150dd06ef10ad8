"""Make a benchmark from documents: spans, a plan, works that write and check, and the screening of their results."""
