"""What each step does to rows and, in the capture's moves, to their annotation: one family a file."""
