"""Calls over HTTP: templates of requests, connections, and readers of answers."""
