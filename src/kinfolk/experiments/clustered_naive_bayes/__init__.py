"""Roy, "Clustered Naive Bayes" (2006), and Roy and Kaelbling, "Efficient Bayesian Task-Level Transfer Learning" (2007).

- ``thesis_table_4_1``: the most common partition of users
- ``ijcai_figure_3``, ``ijcai_figure_4``, ``ijcai_figure_5``: one user with few examples, the trees found, the gains
- ``sharing_real``: six real sets, every way to share
- ``team``, ``team_picture``: what ``kinfolk demo`` shows
- ``learning_curves``: people scored by how many examples models had of them
- ``stand_in``: the made-up meetings that stand in for the papers' own
"""
