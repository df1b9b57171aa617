"""Models weighed by what they predict: ``AveragedNB`` averages naive Bayes models.

``weights`` turns evidence or held-out predictions into weights, ``folds`` holds rows out, ``predictor`` answers.
"""
