"""Models: what answers a prompt, behind a network or in process."""
