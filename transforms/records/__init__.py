"""Floor 1: plain values that the floors above share."""
