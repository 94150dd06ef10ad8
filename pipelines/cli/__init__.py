"""The command line, a module for each kind of command. What is heavy to import is imported by the command itself."""

from pipelines.cli import execute, inspect
from pipelines.cli.group import main

__all__ = ["execute", "inspect", "main"]
