"""Completions of rows with missing cells: exact draws from their posterior, or all of them with their probabilities.

This is the expectation step of structural EM (Friedman, 1998): expected counts of any family come from weighted
complete rows, so that the search for a structure need not know that anything was missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.elimination import eliminate, find_parts, log_probability_of_known_families, log_tables_of
from kinfolk.networks.model.network import Codes, Network, topological_order


class Completed(NamedTuple):
    """Complete rows that stand for rows with missing cells.

    Attributes
    ----------
    codes : int array of shape (n_completions, n_variables)
    weights : ndarray of shape (n_completions,)
        Probability of each completion; those of one original row sum to one.
    row : int array of shape (n_completions,)
        The original row of each, ascending.
    """

    codes: Codes
    weights: NDArray[np.float64]
    row: NDArray[np.int64]


def completions(
    network: Network,
    codes: NDArray[np.integer[Any]],
    rng: np.random.Generator,
    *,
    most: int = 32,
    n_draws: int = 16,
) -> Completed:
    """Replace every row by weighted complete rows.

    Parameters
    ----------
    network : Network
    codes : int array of shape (n_rows, n_variables)
        Below zero where a cell is missing.
    rng : numpy Generator
    most : int
        A row with at most this many ways to fill it in is replaced by all of those that are possible, weighted by their
        posterior probabilities: counts expected from it are exact.
    n_draws : int
        Any other row is replaced by this many draws from its posterior, of equal weight.

    Raises
    ------
    ValueError
        If the network rules out what is observed in a row: it then has no posterior.

    Examples
    --------
    >>> from kinfolk.networks.model.network import make_network
    >>> rain = np.array([0.8, 0.2])
    >>> wet = np.array([[0.9, 0.1], [0.05, 0.95]])
    >>> network = make_network(["rain", "wet"], [["no", "yes"]] * 2, [[], [0]], [rain, wet])
    >>> filled = completions(network, np.array([[0, 0], [-1, 1]]), np.random.default_rng(0))
    >>> filled.codes.tolist(), filled.weights.round(3).tolist(), filled.row.tolist()
    ([[0, 0], [0, 1], [1, 1]], [1.0, 0.296, 0.704], [0, 1, 1])
    """
    missing = codes < 0
    log_ways = missing @ np.log(network.cards)
    listed = np.flatnonzero(log_ways < np.log(most + 0.5))
    drawn = np.flatnonzero(log_ways >= np.log(most + 0.5))
    all_codes, all_weights, all_rows = _list_completions(network, codes, listed)
    if len(drawn):
        draws = draw_missing(network, codes[drawn], n_draws, rng, row_numbers=drawn)
        all_codes = np.concatenate([all_codes, draws.reshape(-1, codes.shape[1])])
        all_weights = np.concatenate([all_weights, np.full(n_draws * len(drawn), 1 / n_draws)])
        all_rows = np.concatenate([all_rows, np.tile(drawn, n_draws)])
    order = np.argsort(all_rows, kind="stable")
    return Completed(np.asfortranarray(all_codes[order]), all_weights[order], all_rows[order])


def draw_missing(
    network: Network,
    codes: NDArray[np.integer[Any]],
    n_draws: int,
    rng: np.random.Generator,
    *,
    row_numbers: NDArray[np.int64] | None = None,
) -> Codes:
    """Draw the missing cells of each row from their joint posterior given its observed ones, exactly.

    Variables are summed out one by one, then drawn in the reverse order, each given those drawn before it; what has
    nothing observed below it follows from its parents.

    Parameters
    ----------
    network : Network
    codes : int array of shape (n_rows, n_variables)
        Below zero where a cell is missing.
    n_draws : int
    rng : numpy Generator
    row_numbers : int array of shape (n_rows,), optional
        What to call the rows in an error; 0, 1, … by default.

    Returns
    -------
    draws : int array of shape (n_draws, n_rows, n_variables)
        The rows, filled in ``n_draws`` times over.

    Raises
    ------
    ValueError
        If the network rules out what is observed in a row, or too many connected cells are missing.

    Examples
    --------
    >>> from kinfolk.networks.model.network import make_network
    >>> rain = np.array([0.8, 0.2])
    >>> wet = np.array([[0.9, 0.1], [0.05, 0.95]])
    >>> network = make_network(["rain", "wet"], [["no", "yes"]] * 2, [[], [0]], [rain, wet])
    >>> draws = draw_missing(network, np.array([[-1, 1]]), 10_000, np.random.default_rng(0))
    >>> float(draws[:, 0, 0].mean().round(1))
    0.7
    """
    numbers = np.arange(len(codes)) if row_numbers is None else row_numbers
    log_tables = log_tables_of(network)
    log_evidence = log_probability_of_known_families(network, log_tables, codes)
    draws = np.repeat(codes[None].astype(np.int32), n_draws, axis=0)
    for part in find_parts(network, codes < 0, numbers):
        for rows in part.chunks(n_draws):
            total, steps = eliminate(part, network, log_tables, codes[rows])
            log_evidence[rows] += total
            _check_possible(log_evidence[rows], numbers[rows])
            for scope, log_product in reversed(steps):
                # One row of the product serves all where no evidence has reached it yet.
                place = np.arange(len(rows)) if len(log_product) == len(rows) else np.zeros(len(rows), dtype=np.int64)
                later = tuple(draws[:, rows, u] for u in scope[1:])
                log_odds = np.moveaxis(log_product, 1, -1)[(place, *later)]
                weights = np.exp(log_odds - log_odds.max(axis=-1, keepdims=True))
                draws[:, rows, scope[0]] = _draw(weights, (n_draws, len(rows)), rng)
    _check_possible(log_evidence, numbers)
    for v in topological_order(network.adjacency()):
        rows = np.flatnonzero(draws[0, :, v] < 0) if n_draws else np.zeros(0, dtype=np.int64)
        if len(rows):
            probabilities = network.tables[v][tuple(draws[:, rows, p] for p in network.parents[v])]
            draws[:, rows, v] = _draw(probabilities, (n_draws, len(rows)), rng)
    return draws


def _list_completions(
    network: Network, codes: NDArray[np.integer[Any]], rows: NDArray[np.int64]
) -> tuple[Codes, NDArray[np.float64], NDArray[np.int64]]:
    """Every possible completion of given rows, with its posterior probability and its row."""
    if not len(rows):
        return np.zeros((0, codes.shape[1]), dtype=np.int32), np.zeros(0), rows
    missing = codes[rows] < 0
    # The k-th completion of a row has the digits of k in the mixed radix of the row's missing variables.
    ways = np.where(missing, network.cards, 1).cumprod(axis=1)
    digit = ways // network.cards**missing
    n_ways = ways[:, -1]
    start = np.cumsum(n_ways) - n_ways
    of = np.repeat(np.arange(len(rows)), n_ways)
    k = np.arange(len(of)) - start[of]
    filled = np.where(missing[of], k[:, None] // digit[of] % network.cards, codes[rows][of]).astype(np.int32)
    log_joint = network.log_probability(filled)
    highest = np.maximum.reduceat(log_joint, start)
    _check_possible(highest, rows)
    weights = np.exp(log_joint - highest[of])
    weights /= np.add.reduceat(weights, start)[of]
    possible = weights > 0
    return filled[possible], weights[possible], rows[of[possible]]


def _draw(weights: NDArray[np.float64], shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a state in proportion to the weights along the last axis, for each place of ``shape``."""
    edges = np.broadcast_to(weights.cumsum(axis=-1), (*shape, weights.shape[-1]))
    drawn: NDArray[np.int64] = ((rng.random(shape) * edges[..., -1])[..., None] >= edges[..., :-1]).sum(axis=-1)
    return drawn


def _check_possible(log_evidence: NDArray[np.float64], numbers: NDArray[np.int64]) -> None:
    """Refuse rows whose observed cells have probability zero."""
    impossible = np.flatnonzero(log_evidence == -np.inf)
    if len(impossible):
        raise ValueError(
            f"row {numbers[impossible[0]]}: its observed cells have probability zero under the network's tables, so "
            "nothing can be said about its missing ones; learn the tables with a prior that rules nothing out"
        )
