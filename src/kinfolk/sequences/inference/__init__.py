"""How the nDP-iHMM is learnt; `gibbs.infer` and `variational.infer` are called by the estimators.

- `gibbs`: chains of a sampler, from where they begin; `sweep`: one sweep, in which `cluster_moves` draws clusters and
  states; `split_merge`: moves of whole clusters along the paths of `annealing`;
  `raftery_lewis`: how long to run;
- `variational`: the mean-field posterior, of one cluster (`mean_field`), of all (`mean_field_mixture`) and of many
  tasks in batches (`stochastic_variational`);
- `agglomeration`, `state_merges`: how mean field finds clusters and states;
- `feature_gibbs`: chains of the beta-process HMM, from where they begin (`feature_starts`); `feature_sweep`: one sweep,
  in which `feature_choices` lets tasks choose their states, and `feature_split_merge` has states split and merge;
- `threads`: work in threads whose results do not depend on their number.
"""
