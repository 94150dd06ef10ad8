"""Calls over HTTP: templates of requests, and connections."""
