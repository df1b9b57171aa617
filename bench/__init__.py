"""Side-by-side speed comparisons with named peers: ``python -m bench`` (see ``make bench``)."""
