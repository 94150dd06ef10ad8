"""Beam's `--setup_file` wants a setup.py; everything it says stands in pyproject.toml."""

from setuptools import setup

setup()
