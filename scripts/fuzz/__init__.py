"""Fuzzing of everything that reads other people's files: ``make fuzz``."""
