"""The machine that rankbeam runs on: worker processes, Ctrl-C, progress and messages."""
