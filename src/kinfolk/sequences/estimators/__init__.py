"""The estimators: `nested`, `shared` and `single`, each its parameters and who shares with whom; `base`: the fit.

`answers`: the methods, which ask the predictor; `columns`: what the columns of a training table hold.
"""
