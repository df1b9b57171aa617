"""Bayes nets of related tasks, their structures learnt together (Niculescu-Mizil and Caruana)."""
