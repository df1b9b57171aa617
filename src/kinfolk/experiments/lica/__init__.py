"""Zhang, Ghahramani and Yang, "Learning Multiple Related Tasks using Latent Independent Component Analysis" (2005).

- ``figure_2_reuters``, ``figure_2_rcv1``: topics of news from few documents, both by ``text``
- ``numeric``: landmine, ratings of computers, schools
- ``synthetic``: whether the sources of made-up tasks are found
- ``methods``: the methods compared, and what each gains over learning alone
"""
