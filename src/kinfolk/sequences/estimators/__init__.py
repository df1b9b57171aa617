"""The estimators: `nested`, `shared`, `single` and `feature`, each its parameters and who shares what; `base`: the fit.

`answers`: the methods, which ask the predictor; `columns`: what the columns of a training table hold.
"""
