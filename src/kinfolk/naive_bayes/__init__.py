"""The sharing models of Roy (2006) and of Roy and Kaelbling (2007): naive Bayes for many related tasks.

- ``model``: the equations. Training data, hyper-parameters, blocks of tasks and the mixture over them, noisy copies.
- ``inference``: one algorithm a file, called what a user types (bhc, gibbs, exact, variational), and what they share:
  learning hyper-parameters, leaving rows out, evidence.
- ``answers``: what a fitted or a loaded model says of rows and of itself, and its archive.
- ``estimators``: NoSharingNB, CompleteSharingNB, PrototypeNB and ClusteredNB, one a file.
"""
