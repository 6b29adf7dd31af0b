"""Models in the formats of other libraries and runtimes."""
