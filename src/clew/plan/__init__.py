"""What the user asked for: one immutable graph of operators, and the algebra of moves."""
