"""How structures are found, one algorithm a file.

- ``problem``, ``climb``, ``joint_states``, ``restarts``, ``together``: greedy and tabu search over the structures of
  one task or of all.
- ``classes``: greedy search over equivalence classes of one task's structures.
- ``branch_and_bound``: the best states of one pair of variables, with a penalty for each pair of tasks.
- ``structures``, ``assembly``: the way of sharing that was asked for; then probability tables.
- ``validate``: the penalty chosen by rows held out. ``em``, ``completions``: rows with missing cells.
- ``bootstrap``: how sure each arc is.
"""
