"""The verbs that users write: traced frames and groups."""
