"""Structure learning by other packages, each run in a process of its own that is ended when its time is up.

None of them is a dependency: one that is not installed is left out by name. All get the same codes of complete rows,
and all that take a score get BDeu with an equivalent sample size of one, or BIC where the name says so.

causal-learn's BDeu has a prior over structures, by which an arc has the probability 1 / (n - 1) of n variables: next to
the estimator's own by default. It takes the states of a variable to be those that its rows have, where the others are
told all that the network has. Its BIC is that of linear Gaussian models, with four times the usual penalty, of the
codes as numbers; it has no other. With "quick BDeu" its searches ask ``remembered`` for the same score. Its BOSS and
GRaSP look at the best of growing sets of parents first since version 0.1.4.8.

XGES (A. Nazaret and D. Blei, "Extremely greedy equivalence search", UAI 2024) has a score of Gaussian models alone, and
takes others: it gets BDeu and the prior that the estimator has by default. Its package wants a numba older than
kinfolk's, and works with this one: ``pip install --no-deps xges sortedcontainers``.
"""

from __future__ import annotations

import math
import multiprocessing
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.experiments.networks.remembered import ForCausalLearn, RememberedBDeu

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Codes = NDArray[np.int32]

_PERMUTATIONS = "causallearn.search.PermutationBased"
_GES = "causallearn.search.ScoreBased.GES"
_BDEU, _BIC = "local_score_BDeu", "local_score_BIC_from_cov"


class Answer(NamedTuple):
    """A structure, or a graph of its class with edges both ways, and the processor time that it took."""

    adjacency: NDArray[np.bool_]
    seconds: float


class Peer(NamedTuple):
    """What a method is called, the module that has it, and the function that learns by it."""

    name: str
    module: str
    learn: Callable[[Codes, NDArray[np.int64]], NDArray[np.bool_]]


def _frame(codes: Codes, cards: NDArray[np.int64]) -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            f"V{v}": pd.Categorical.from_codes(codes[:, v], [f"s{x}" for x in range(card)])
            for v, card in enumerate(cards)
        }
    )


def _from_names(arcs: Any, n: int) -> NDArray[np.bool_]:
    adjacency = np.zeros((n, n), dtype=bool)
    for parent, child in arcs:
        adjacency[int(parent[1:]), int(child[1:])] = True
    return adjacency


def _from_causal_learn(graph: Any) -> NDArray[np.bool_]:
    # −1 at the tail and 1 at the head of an arc, −1 at both ends of an edge without direction.
    ends = graph.graph
    return np.asarray((ends == -1) & ((ends.T == 1) | (ends.T == -1)))


def _permutations(
    search: str, score: str, quick: bool = False
) -> Callable[[Codes, NDArray[np.int64]], NDArray[np.bool_]]:
    def learn(codes: Codes, cards: NDArray[np.int64]) -> NDArray[np.bool_]:
        module = import_module(f"{_PERMUTATIONS}.{search}")
        if quick:  # in this process, which is the peer's own
            vars(module)["LocalScoreClass"] = ForCausalLearn
        return _from_causal_learn(getattr(module, search.lower())(codes.astype(float), score_func=score, verbose=False))

    return learn


def _causal_learn_ges(quick: bool = False) -> Callable[[Codes, NDArray[np.int64]], NDArray[np.bool_]]:
    def learn(codes: Codes, cards: NDArray[np.int64]) -> NDArray[np.bool_]:
        module = import_module(_GES)
        if quick:
            vars(module)["LocalScoreClass"] = ForCausalLearn
        return _from_causal_learn(module.ges(codes.astype(float), score_func=_BDEU)["G"])

    return learn


def _xges(codes: Codes, cards: NDArray[np.int64]) -> NDArray[np.bool_]:
    from xges import XGES
    from xges.scorer import ScorerInterface

    n = len(cards)
    score = RememberedBDeu(codes, cards, -math.log(n - 1))

    class Score(ScorerInterface):
        n_variables = n

        def local_score(self, target: int, parents: Any) -> float:
            return score.family(target, parents)

    found = XGES().fit(codes.astype(float), scorer=Score(), verbose=0)
    graph = np.zeros((n, n), dtype=bool)
    for v in range(n):
        graph[[*found.get_parents(v), *found.get_neighbors(v)], v] = True
    return graph


def _pgmpy_climb(codes: Codes, cards: NDArray[np.int64]) -> NDArray[np.bool_]:
    from pgmpy.estimators import BDeu, HillClimbSearch

    frame = _frame(codes, cards)
    found = HillClimbSearch(frame).estimate(scoring_method=BDeu(frame, equivalent_sample_size=1), show_progress=False)
    return _from_names(found.edges(), len(cards))


def _pybnesian_climb(codes: Codes, cards: NDArray[np.int64]) -> NDArray[np.bool_]:
    import pybnesian

    frame = _frame(codes, cards)
    start = pybnesian.DiscreteBN(list(frame.columns))
    found = pybnesian.GreedyHillClimbing().estimate(pybnesian.ArcOperatorSet(), pybnesian.BDe(frame, iss=1), start)
    return _from_names(found.arcs(), len(cards))


def _pyagrum_climb(codes: Codes, cards: NDArray[np.int64]) -> NDArray[np.bool_]:
    import pyagrum

    learner = pyagrum.BNLearner(_frame(codes, cards))
    learner.useScoreBDeu()
    learner.useLocalSearchWithTabuList()
    learner.setNumberOfThreads(1)
    found = learner.learnBN()
    return _from_names([(found.variable(a).name(), found.variable(b).name()) for a, b in found.arcs()], len(cards))


PEERS = (
    Peer("causal-learn BOSS, BDeu", f"{_PERMUTATIONS}.BOSS", _permutations("BOSS", _BDEU)),
    Peer("causal-learn BOSS, Gaussian BIC", f"{_PERMUTATIONS}.BOSS", _permutations("BOSS", _BIC)),
    Peer("causal-learn GRaSP, BDeu", f"{_PERMUTATIONS}.GRaSP", _permutations("GRaSP", _BDEU)),
    Peer("causal-learn GRaSP, Gaussian BIC", f"{_PERMUTATIONS}.GRaSP", _permutations("GRaSP", _BIC)),
    Peer("causal-learn GES, BDeu", _GES, _causal_learn_ges()),
    Peer("causal-learn BOSS, quick BDeu", f"{_PERMUTATIONS}.BOSS", _permutations("BOSS", _BDEU, quick=True)),
    Peer("causal-learn GRaSP, quick BDeu", f"{_PERMUTATIONS}.GRaSP", _permutations("GRaSP", _BDEU, quick=True)),
    Peer("causal-learn GES, quick BDeu", _GES, _causal_learn_ges(quick=True)),
    Peer("XGES, quick BDeu", "xges", _xges),
    Peer("pgmpy climb, BDeu", "pgmpy.estimators", _pgmpy_climb),
    Peer("PyBNesian climb, BDeu", "pybnesian", _pybnesian_climb),
    Peer("pyAgrum tabu, BDeu", "pyagrum", _pyagrum_climb),
)


def is_installed(peer: Peer) -> bool:
    """Whether a peer's package is there; it is not imported for that."""
    return find_spec(peer.module.partition(".")[0]) is not None


def learn_within(peer: str, codes: Codes, cards: NDArray[np.int64], limit: float) -> Answer | None:
    """Let a peer learn a structure in at most so many seconds of the processor; None where that was too short.

    Where the system cannot limit those (Windows), seconds by the clock are limited. What the peer raises is raised
    here, by the peer's name.
    """
    context = _context()
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(peer, codes, cards, limit, there), daemon=True)
    process.start()
    there.close()
    try:
        # Until it is ready, which is no part of its time.
        here.recv()
        if not here.poll(limit if resource is None else None):
            return None
        answer = here.recv()
    except EOFError:
        process.join()
        if resource is not None and process.exitcode == -signal.SIGXCPU:
            return None
        raise RuntimeError(f"{peer} ended without an answer") from None
    finally:
        process.terminate()
        process.join()
    if isinstance(answer, str):
        raise RuntimeError(f"{peer}: {answer}")
    return Answer(*answer)


def _context() -> Any:
    """How processes are begun: where it can be, from one that has imported all peers once."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *(peer.module for peer in PEERS if is_installed(peer))])
    return context


def _answer(peer: str, codes: Codes, cards: NDArray[np.int64], limit: float, to: Any) -> None:
    one = next(one for one in PEERS if one.name == peer)
    # Some begin with the variables in a random order.
    random.seed(0)
    with suppress(Exception):  # only to import and to warm up: if it fails, the next one tells
        one.learn(codes[:50, :3], cards[:3])
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(process_time() + limit), resource.RLIM_INFINITY))
    to.send("ready")
    try:
        begun = process_time()
        found = one.learn(codes, cards)
        to.send((found, process_time() - begun))
    except Exception as error:  # whatever it is, it goes to the other process
        to.send(f"{type(error).__name__}: {error}")
