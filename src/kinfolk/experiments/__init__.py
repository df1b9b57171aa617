"""One file per figure or table of the papers; ``kinfolk reproduce NAME`` runs it."""
