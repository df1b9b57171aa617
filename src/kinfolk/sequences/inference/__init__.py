"""How the nDP-iHMM is learnt: one algorithm a file.

- `gibbs`: a sweep of the sampler, of which `cluster_moves` draws clusters and states and `concentrations` the
  hyper-parameters; `split_merge` moves whole clusters along the paths of `annealing`;
- `starts`: where chains begin; `chains`: several side by side; `raftery_lewis`: how long they should run;
- `variational`: the mean-field posterior, of one cluster (`mean_field`, with the kernels of `local_posteriors` and
  `base_weights`), of all (`mean_field_mixture`) and of many tasks in batches (`stochastic_variational`);
- `agglomeration`, `task_set_fits`, `state_merges`, `most_probable_hyper`: how mean field finds clusters and states;
- `threads`: work in threads whose results do not depend on their number.
"""
