"""What a Bayes net of one task and of many is: values and equations, none of which searches for anything.

- ``network``, ``data``, ``fitted``: a network; the coded rows of all tasks, also laid out for counting; what is learnt.
- ``scores/``, ``families``, ``family_scores``: scores of a variable with its parents, what changing the parents would
  gain, and how searches ask for both.
- ``priors``, ``configurations``: priors over all tasks' structures and how strong they are; the best states of one pair
  of variables under them.
- ``equivalence``, ``pdag``, ``distances``: equivalence classes of structures, and how far structures are apart.
- ``parameters``, ``shared_parameters``: probability tables of known structures, for each task alone or with its kin.
- ``elimination``: the probability of rows with missing cells.
"""
