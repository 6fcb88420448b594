"""Event keys of the rows of every stream, recorded behind the query, and what they cost."""
