"""What a fitted or a loaded model says: predictions (numpy alone), explanations, tables of parameters, its archive."""
