"""Random and damaged input for everything that clew reads and has not written itself."""
