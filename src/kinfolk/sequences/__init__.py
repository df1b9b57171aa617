"""Infinite hidden Markov models that learn from their kin (K. Ni, L. Carin and D. Dunson, ICML 2007).

- ``model``: the nDP-iHMM in its weak limit as values, what hidden states emit, and sums over hidden paths;
- ``inference``: Gibbs sampling ("gibbs") with moves that split and merge clusters, and mean field ("variational");
- ``answers``: what draws of the posterior say of sequences, with numpy alone where a loaded model answers; archives;
- ``estimators``: `NestedIHMM` (nDP-iHMM), `SharedIHMM` (DP-iHMM), `SingleIHMM` (an iHMM for each task), `AveragedIHMM`,
  which weighs the three, and `FeatureIHMM` (a beta-process HMM, in which every task uses some of the same states).

Estimators import inference and answers, which do not import each other; all import the model.
"""
