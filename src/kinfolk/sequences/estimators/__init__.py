"""The estimators: `nested`, `shared` and `single`, each its parameters and who shares with whom; `base`: the rest."""
