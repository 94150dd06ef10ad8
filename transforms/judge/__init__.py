"""Judging: metrics of answers, the steps that they ask of judges, panels of judges, and how good these are."""
