"""Generated data sets from the papers, and loaders of real ones found through ``KINFOLK_DATA``."""
