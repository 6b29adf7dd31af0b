"""Photos in tar archives, for data sets that are too large for a folder of files."""
