"""What a fitted or a loaded linear model of many tasks says, with numpy alone.

``archive`` has all that a fit leaves behind as one value, and that value as plain data and back. ``predictor`` makes
answers of it, by ``moments``: mean and variance of the linear predictors of tasks that are known and of new ones.
``top_features`` says what sources are made of.
"""
