"""Learn from many small, related data sets at once."""

__version__ = "0.1.0"
