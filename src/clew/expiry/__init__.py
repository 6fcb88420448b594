"""For how long a row may still take part in results."""
