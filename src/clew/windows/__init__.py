"""Windows over rows in order: what Spark's own windows cannot say."""
