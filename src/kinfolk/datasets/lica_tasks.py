"""Tasks drawn from LICA's own model, their loadings, sources and weights known (Zhang et al. 2005, eqs. 1 and 2).

``make_lica_tasks`` has normal features, ``make_lica_documents`` words of documents that are about a few topics each.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import expit, ndtr
from sklearn.utils import check_random_state

_WORDS_OF_TOPIC = 60


class LicaTasks(NamedTuple):
    """Tasks in long form, and what they were made from.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n_tasks * n_rows, n_features)
        Standard normal features, or words.
    y : ndarray of shape (n_tasks * n_rows,)
        0 or 1; real numbers where the link is Gaussian.
    task : int ndarray of shape (n_tasks * n_rows,)
        The task of each row.
    loadings : ndarray of shape (n_features, n_sources)
        Λ.
    sources : ndarray of shape (n_tasks, n_sources)
        s.
    weights : ndarray of shape (n_tasks, n_features)
        θ = Λs + e.
    """

    X: Any
    y: NDArray[np.float64] | NDArray[np.int64]
    task: NDArray[np.int64]
    loadings: NDArray[np.float64]
    sources: NDArray[np.float64]
    weights: NDArray[np.float64]


def make_lica_tasks(
    n_tasks: int,
    n_features: int,
    n_rows: int,
    n_sources: int,
    *,
    sparsity: float = 0.0,
    noise: float = 0.1,
    signal: float = 3.0,
    source: Literal["laplace", "gaussian"] = "laplace",
    link: Literal["logistic", "probit", "gaussian"] = "logistic",
    random_state: int | np.random.RandomState | None = None,
) -> LicaTasks:
    """Draw tasks whose weights mix a few latent sources.

    Parameters
    ----------
    n_tasks, n_features, n_rows, n_sources : int
        Rows are those of each task.
    sparsity : float
        Probability that a source is exactly zero for a task; the others keep unit variance.
    noise : float
        Share of the weights' variance that no source explains, from 0 to 1.
    signal : float
        Standard deviation of the linear predictor.
    source : {"laplace", "gaussian"}
        Distribution of the sources; Gaussian ones are known up to a rotation only.
    link : {"logistic", "probit", "gaussian"}
        How the predictor becomes a target; Gaussian adds a standard normal residual.
    random_state : int, RandomState or None

    Returns
    -------
    LicaTasks

    Raises
    ------
    ValueError
        Where a number is out of its range.

    References
    ----------
    .. [1] J. Zhang, Z. Ghahramani and Y. Yang, "Learning Multiple Related Tasks using Latent Independent Component
       Analysis", NIPS 18, 2005.

    Examples
    --------
    >>> from kinfolk.datasets import make_lica_tasks
    >>> made = make_lica_tasks(5, 20, 30, 2, random_state=0)
    >>> made.X.shape, made.sources.shape, made.weights.shape
    ((150, 20), (5, 2), (5, 20))
    """
    sizes = {"n_tasks": n_tasks, "n_features": n_features, "n_rows": n_rows, "n_sources": n_sources}
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; it needs to be 1 or more.")
    if not 0.0 <= sparsity < 1.0:
        raise ValueError(f"sparsity is {sparsity}; it needs to be at least 0 and below 1.")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise is {noise}; it needs to be from 0 to 1.")
    for name, value, known in (
        ("source", source, ("laplace", "gaussian")),
        ("link", link, ("logistic", "probit", "gaussian")),
    ):
        if value not in known:
            raise ValueError(f"{name} is {value!r}; it needs to be one of {', '.join(known)}.")
    rng = check_random_state(random_state)
    variance = signal**2 / n_features
    drawn = (n_tasks, n_sources)
    sources = rng.laplace(scale=0.5**0.5, size=drawn) if source == "laplace" else rng.normal(size=drawn)
    sources *= rng.uniform(size=drawn) >= sparsity
    per_source = (1.0 - noise) * variance / (n_sources * (1.0 - sparsity))
    loadings = rng.normal(scale=per_source**0.5, size=(n_features, n_sources))
    weights = sources @ loadings.T + rng.normal(scale=(noise * variance) ** 0.5, size=(n_tasks, n_features))
    X = rng.normal(size=(n_tasks * n_rows, n_features))
    task = np.repeat(np.arange(n_tasks), n_rows)
    predictor = np.einsum("ij,ij->i", X, weights[task])
    y: NDArray[np.float64] | NDArray[np.int64]
    if link == "gaussian":
        y = predictor + rng.normal(size=predictor.size)
    else:
        probability = expit(predictor) if link == "logistic" else ndtr(predictor)
        y = (rng.uniform(size=predictor.size) < probability).astype(np.int64)
    return LicaTasks(X, y, task, loadings, sources, weights)


def make_lica_documents(
    n_tasks: int,
    n_words: int,
    n_rows: int,
    n_sources: int,
    *,
    n_topics: int = 40,
    noise: float = 0.1,
    signal: float = 6.0,
    random_state: int | np.random.RandomState | None = None,
) -> LicaTasks:
    """Draw documents of many tasks whose weights mix a few latent sources.

    Four of five words of a document come from its topics, of which it has few (a Dirichlet of 0.05), the others from a
    background by Zipf's law; a topic has 60 words at random. Documents have about 80 words. A word that occurs t times
    weighs (1 + log t) times the log of its rarity, and rows have length 1, as ``load_reuters`` has them. A source has a
    normal loading for each topic, and the words of the topic share it but for some of their own.

    Parameters
    ----------
    n_tasks, n_words, n_rows, n_sources : int
        Rows are the documents of each task.
    n_topics : int
    noise : float
        Share of the weights' variance that no source explains, from 0 and below 1.
    signal : float
        Standard deviation of the linear predictor, over all documents.
    random_state : int, RandomState or None

    Returns
    -------
    LicaTasks
        ``X`` is a csr_matrix; labels are about as often 0 as 1.

    Examples
    --------
    >>> from kinfolk.datasets import make_lica_documents
    >>> made = make_lica_documents(5, 300, 20, 2, random_state=0)
    >>> made.X.shape, made.sources.shape, round(float(made.X[0].power(2).sum()), 6)
    ((100, 300), (5, 2), 1.0)
    """
    if n_words < _WORDS_OF_TOPIC:
        raise ValueError(f"n_words is {n_words}; it needs to be {_WORDS_OF_TOPIC} or more.")
    if not 0.0 <= noise < 1.0:
        raise ValueError(f"noise is {noise}; it needs to be at least 0 and below 1.")
    rng = check_random_state(random_state)
    topics = np.zeros((n_topics, n_words))
    for words in topics:
        words[rng.choice(n_words, _WORDS_OF_TOPIC, replace=False)] = rng.dirichlet(np.ones(_WORDS_OF_TOPIC))
    X = _weigh(_draw_words(topics, n_tasks * n_rows, rng))
    sources = rng.laplace(scale=0.5**0.5, size=(n_tasks, n_sources))
    loadings = (topics > 0.0).T @ rng.normal(size=(n_topics, n_sources)) + 0.3 * rng.normal(size=(n_words, n_sources))
    weights = sources @ loadings.T
    weights = weights + rng.normal(size=weights.shape) * np.std(weights) * (noise / (1.0 - noise)) ** 0.5
    task = np.repeat(np.arange(n_tasks), n_rows)
    predictor = np.asarray(X.multiply(weights[task]).sum(axis=1)).ravel()
    unit = signal / np.std(predictor)
    y = (rng.uniform(size=predictor.size) < expit(unit * (predictor - predictor.mean()))).astype(np.int64)
    return LicaTasks(X, y, task, unit * loadings, sources, unit * weights)


def _draw_words(topics: NDArray[np.float64], n_documents: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """How often each document has each word."""
    n_topics, n_words = topics.shape
    background = 1.0 / (np.arange(n_words) + 5.0)
    mixtures = rng.dirichlet(np.full(n_topics, 0.05), size=n_documents)
    probability = 0.8 * mixtures @ topics + 0.2 * background / background.sum()
    lengths = 1 + rng.poisson(80, size=n_documents)
    return np.stack([rng.multinomial(length, words) for length, words in zip(lengths, probability, strict=True)])


def _weigh(counts: NDArray[np.int64]) -> csr_matrix:
    X = csr_matrix(counts, dtype=np.float64)
    X.data = 1.0 + np.log(X.data)
    rarity = np.log(X.shape[0] / np.maximum(X.getnnz(axis=0), 1))
    X = csr_matrix(X.multiply(rarity))
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
    return csr_matrix(X.multiply(1.0 / np.where(length > 0.0, length, 1.0)))
