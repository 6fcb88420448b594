"""Run a traced query: clean rows to the user's sink, provenance to the store, exactly once."""
