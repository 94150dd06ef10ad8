"""Make a benchmark from documents: its file, plan, rounds and output, and reviews and exports."""
