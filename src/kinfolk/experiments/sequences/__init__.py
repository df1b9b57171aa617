"""Ni, Carin and Dunson, "Multi-Task Learning for Sequential Data via iHMMs and the Nested Dirichlet Process" (2007).

- ``synthetic``: figures 4 and 5, three clusters of twelve tasks
- ``music``: figures 6 and 7, ten clips
- ``mocap``: exercises in six recordings of movement (Fox, Hughes, Sudderth and Jordan 2014)
- ``vowels``: nine speakers, told apart by few utterances
- ``models``: the three models compared, and pairs of them
"""
