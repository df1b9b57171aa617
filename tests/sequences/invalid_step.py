"""The cluster step as the paper has it, which leaves no distribution as it is: a twin that tests have to tell apart."""

import numpy as np

from kinfolk.sequences.inference.sweep import draw_given_states
from kinfolk.sequences.model.dirichlet_draws import draw_transitions
from kinfolk.sequences.model.filtering import draw_states, log_likelihoods, scaled
from kinfolk.sequences.model.ndp_ihmm import counts_of


def papers_sweep(state, sequences, emission, priors, rng):
    """Score every cluster with transitions drawn given the task's current states (paper 004, section 3.3, 1 and 4)."""
    counts = counts_of(state, sequences)
    cluster, states, transitions = state.cluster.copy(), state.states.copy(), state.transitions.copy()
    sizes = np.bincount(cluster, minlength=len(state.base_weights))
    for j in range(sequences.n_tasks):
        part, steps = sequences.between(j, j + 1), sequences.steps_of(j)
        sizes[cluster[j]] -= 1
        rows, each, scores = [], [], []
        for k in range(len(state.base_weights)):
            densities = scaled(emission.log_densities(state.parameters[k], part.observations))
            own = state.hyper.alpha * state.base_weights[k]
            drawn = draw_transitions(own, state.hyper.stickiness, counts[j], rng)
            rows.append(drawn)
            each.append(densities)
            scores.append(log_likelihoods(densities, part.bounds, drawn).sum())
        logits = np.log(sizes + state.hyper.eta / len(state.base_weights)) + scores
        cluster[j] = k = rng.choice(len(logits), p=np.exp(logits - np.logaddexp.reduce(logits)))
        sizes[k] += 1
        transitions[j] = rows[k]
        draw_states(each[k], part.layout, rows[k][None], rng.random(part.n_steps), states[steps])
    moved = state._replace(cluster=cluster, states=states, transitions=transitions)
    return draw_given_states(moved, sequences, emission, priors, rng)
