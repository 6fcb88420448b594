"""An identity for each incoming row, the same on every read."""
