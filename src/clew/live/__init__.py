"""Live forward provenance: what each row did, and whether it may still do more."""
