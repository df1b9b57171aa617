"""Models weighed by what they predict: ``TransferClassifier``, ``TransferRegressor``, ``AveragedNB``.

``members`` is the table of models that are averaged, ``models`` how each kind of them learns, ``answers`` what it says;
``trees`` is the member that sees interactions. ``held_out`` asks them about rows and tasks that they have not seen,
``weights`` turns that, or evidence, into weights, which ``sizes`` lets depend on the rows of a task. ``scales``
are how far off numbers are. ``averaging`` and ``label_average`` are what estimators have in common, ``classifier``,
``regressor`` and ``averaged`` are they, ``predictor`` answers, ``explaining`` says why.
``comparison`` holds models against each other (`kinfolk.evaluate`), ``contenders`` are those models.
"""
