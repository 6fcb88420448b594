"""Questions about provenance, answered from the store without Spark."""
