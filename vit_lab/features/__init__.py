"""Features of photos, written to a file and read from it."""
