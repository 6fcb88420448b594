"""What each step does to rows and, in moves, to their annotation: one family a file."""
