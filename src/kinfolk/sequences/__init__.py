"""Infinite hidden Markov models that learn from their kin (Ni, Carin and Dunson 2007)."""
