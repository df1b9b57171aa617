"""Losses, and the decisions that minimise expected loss, "ask" among them (Roy 2006, chapters 1, 3).

losses      what each action costs under each true class
choosing    the action with the smallest expected loss, and what actions taken cost
classifier  a scikit-learn classifier that decides by expected loss
predictor   what such a classifier decides once it was saved

A saved model decides with NumPy alone, so scikit-learn loads only when its estimator is asked for.
"""

from typing import TYPE_CHECKING

from kinfolk.lazy import lazily

if TYPE_CHECKING:
    from kinfolk.decisions.choosing import decide, expected_loss, realised_loss
    from kinfolk.decisions.classifier import DecisionClassifier
    from kinfolk.decisions.losses import Loss

__all__ = ["DecisionClassifier", "Loss", "decide", "expected_loss", "realised_loss"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "DecisionClassifier": "classifier",
        "Loss": "losses",
        "decide": "choosing",
        "expected_loss": "choosing",
        "realised_loss": "choosing",
    },
)
