"""Shared by the clients of Google's services: channels, addresses, errors."""
