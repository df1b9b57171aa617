"""The papers' figures, tables and studies done again; ``kinfolk reproduce NAME`` runs one.

A folder for each paper, a file for each figure, table or study, which has what the paper did (``ABOUT``) and a function
``study(quick, seed)``:

- ``clustered_naive_bayes/``: Roy (2006) and Roy and Kaelbling (2007), and ``kinfolk demo``
- ``networks/``: Niculescu-Mizil and Caruana (2012)
- ``lica/``: Zhang, Ghahramani and Yang (2005)
- ``sequences/``: Ni, Carin and Dunson (2007)
- ``registry``: all of them by name; ``publishing``: what each leaves behind
- ``measuring``, ``drawing``: means with their errors, and pictures, as several papers need them
"""
