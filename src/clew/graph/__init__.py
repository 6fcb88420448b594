"""What the user asked for: one immutable graph of operators."""
