"""Models weighed by what they predict: ``TransferClassifier``, and ``AveragedNB``, the same with naive Bayes alone.

``members`` is the table of models that are averaged, ``models`` how each kind of them learns, ``answers`` what it says;
``trees`` is the member that sees interactions. ``held_out`` asks them about rows and tasks that they have not seen,
``weights`` turns that, or evidence, into weights, which ``sizes`` lets depend on the rows of a task. ``averaging`` is
what estimators have in common, ``classifier`` and ``averaged`` are they, ``predictor`` answers.
``comparison`` holds models against each other (`kinfolk.evaluate`), ``contenders`` are those models.
"""
