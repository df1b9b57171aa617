"""How structures are found, one algorithm a file.

- ``infer``: the way in; data, hyper-parameters, options and a seed give hyper-parameters and networks.
- ``structures``: the way of sharing that was asked for.
- ``climb``, ``joint_states``: greedy and tabu search over the structures of one task or of all, with restarts.
- ``orders``: search over orders of the variables of one task or of several.
- ``classes``: search over equivalence classes of one task's structures.
- ``branch_and_bound``: the best states of one pair of variables, with a penalty for each pair of tasks.
- ``validate``: the penalty chosen by rows held out. ``em``, ``completions``: rows with missing cells.
- ``bootstrap``: how sure each arc is.
"""
