"""Models weighed by what they predict: ``AveragedNB`` averages naive Bayes models.

``averaged`` is the estimator, ``members`` are the models that it averages, ``weights`` turns evidence or held-out
predictions into weights, ``predictor`` answers.
``comparison`` holds models against each other (`kinfolk.evaluate`), ``contenders`` are those models.
"""
