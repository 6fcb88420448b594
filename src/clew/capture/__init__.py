"""What an annotation is: one capture method per file."""
