"""The command line, a module for each kind of command. What is heavy to import is imported by the command itself."""

from rankbeam.pipelines.cli import compare, execute, gate, inspect, report, status, views, warehouse
from rankbeam.pipelines.cli.group import main

__all__ = ["compare", "execute", "gate", "inspect", "main", "report", "status", "views", "warehouse"]
