"""Models averaged: how much each is to be believed, and predictions of them all together (thesis section 3.2.2)."""
