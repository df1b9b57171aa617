"""Roy, "Clustered Naive Bayes" (2006), and Roy and Kaelbling, "Efficient Bayesian Task-Level Transfer Learning" (2007).

- ``thesis_figure_2_5`` to ``thesis_figure_4_8``, ``thesis_table_4_1``: the thesis by the numbers of its figures
- ``thesis_evidence``: its evidence ratios; ``thesis_real``: its chapter 4 on real data
- ``thesis_section_2_4``: one prototype for two groups of tasks
- ``ijcai_figure_3``, ``ijcai_figure_4``, ``ijcai_figure_5``: one user with few examples, the trees found, the gains
- ``sharing_real``: six real sets, every way to share
- ``team``, ``team_picture``: what ``kinfolk demo`` shows
- ``thesis_models``, ``accuracy_curves``, ``left_out_accuracy``, ``evidence_ratios``: what several of these
  figures measure
- ``learning_curves``: people scored by how many examples models had of them
- ``stand_in``: the made-up meetings that stand in for the papers' own
"""
