"""What is done to a store besides asking: sizes, pruning, retention, erasing."""
