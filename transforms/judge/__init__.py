"""Judging: prompts and known items that ship with rankbeam."""
