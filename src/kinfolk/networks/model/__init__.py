"""What a Bayes net of one task and of many is: values and equations, none of which searches for anything.

- ``network``, ``data``, ``cases``: a network; the coded rows of all tasks; the same laid out for counting.
- ``scores/``, ``families``, ``family_scores``: scores of a variable with its parents, what changing the parents would
  gain, and how searches ask for both.
- ``priors``, ``configurations``, ``strength``: priors over one and over all structures, the best states of one pair of
  variables under them, and how strongly structures are held together.
- ``equivalence``, ``pdag``, ``distances``: equivalence classes of structures, and how far structures are apart.
- ``parameters``, ``shared_parameters``: probability tables of known structures, for each task alone or with its kin.
- ``elimination``: the probability of rows with missing cells.
"""
