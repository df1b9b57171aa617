"""What hidden Markov models found and answer, for ``kinfolk inspect`` and ``kinfolk predict``: words and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.cli.tables import fact_lines, shown, text_table

if TYPE_CHECKING:
    import polars as pl

# Of states that are alike and of kin, so many lines are read.
_MOST_LINES = 20


def describe(estimator: Any) -> dict[str, Any]:
    """The model, its clusters, tasks and hidden states, ready for JSON."""
    predictor = estimator._predictor()
    tasks, partition = estimator.tasks_.tolist(), estimator.partition_.tolist()
    n_states = estimator.n_states_
    clusters: dict[int, list[Any]] = {}
    for task, cluster in zip(tasks, partition, strict=True):
        clusters.setdefault(cluster, []).append(task)
    states = predictor.states()
    rows = [dict(zip(states, row, strict=True)) for row in zip(*states.values(), strict=True)]
    convergence = estimator.convergence_
    return {
        "model": type(estimator).__name__,
        "inference": getattr(estimator, "inference", "gibbs"),  # a model that only samples has no such parameter
        "columns": {
            str(column if predictor.layout.names is None else predictor.layout.names[column]): channel.kind
            for channel in predictor.layout.channels
            for column in channel.columns
        },
        **({"weights": estimator.weights_} if hasattr(estimator, "weights_") else {}),
        "n_clusters": _posterior(estimator.n_clusters_),
        "clusters": [{"cluster": cluster, "tasks": own} for cluster, own in sorted(clusters.items())],
        "tasks": [
            {"task": task, "cluster": cluster, "n_states": _posterior(own)}
            for task, cluster, own in zip(tasks, partition, n_states, strict=True)
        ],
        "states": rows,
        "converged": None if convergence is None else bool(estimator.converged_),
        "advice": None if convergence is None else convergence.advice(),
    }


def _posterior(shares: Any) -> dict[str, float]:
    """Probabilities of the numbers that have any."""
    return {str(number): float(share) for number, share in enumerate(shares) if share > 0.0}


def _told(posterior: dict[str, float]) -> str:
    """A number and how probable it is.

    Examples
    --------
    >>> _told({"2": 0.75, "3": 0.25})
    '2 (75%)'
    """
    number = max(posterior, key=lambda key: posterior[key])
    return f"{number} ({posterior[number]:.0%})"


def facts_of(about: dict[str, Any]) -> list[tuple[str, str]]:
    """What there is to be read of hidden Markov models, in lines."""
    used = [int(max(entry["n_states"], key=lambda key: entry["n_states"][key])) for entry in about["tasks"]]
    few, many = min(used), max(used)
    return [
        ("model", f"{about['model']} ({about['inference']})"),
        ("tasks", f"{len(about['tasks']):,}"),
        ("columns", ", ".join(f"{name} ({kind})" for name, kind in about["columns"].items())),
        ("clusters", _told(about["n_clusters"])),
        ("states of a task", f"{few}" if few == many else f"{few} to {many}"),
        *(
            [("weights", ", ".join(f"{name} {share:.0%}" for name, share in about["weights"].items()))]
            if "weights" in about
            else []
        ),
        *([] if about["advice"] is None else [("chains", about["advice"])]),
    ]


def inspect_all(estimator: Any) -> dict[str, Any]:
    """All tasks and states, and which states are alike."""
    similar = estimator._predictor().similar_states()
    pairs = [dict(zip(similar, row, strict=True)) for row in zip(*similar.values(), strict=True)]
    return {**describe(estimator), "similar_states": pairs}


def all_text(about: dict[str, Any]) -> str:
    """The same, to be read."""
    states = [
        [str(row["cluster"]), str(row["state"]), row["name"], row["share"], row["duration"], row["n_tasks"]]
        for row in about["states"]
    ]
    tasks = [[shown(row["task"]), str(row["cluster"]), _told(row["n_states"])] for row in about["tasks"]]
    parts = [
        fact_lines(facts_of(about)),
        text_table(["task", "cluster", "states"], tasks),
        "In the draw that tells hidden states:\n"
        + text_table(["cluster", "state", "shows", "share of steps", "mean stay", "tasks"], states),
    ]
    pairs = [
        [f"{row['cluster']}/{row['state']}", f"{row['other_cluster']}/{row['other_state']}", row["name"],
         row["other_name"], row["distance"]]
        for row in about["similar_states"][:_MOST_LINES]
    ]  # fmt: skip
    if pairs:
        parts.append(text_table(["state", "is like", "shows", "shows", "distance (0 to 1)"], pairs))
    return "\n".join(parts)


def inspect_one(estimator: Any, task: Any) -> dict[str, Any]:
    """One task: its cluster and kin, its number of states, and which it is in."""
    from kinfolk.cli.description import kin_of
    from kinfolk.sequences.answers.states import states_of

    predictor = estimator._predictor()
    place = estimator.tasks_.tolist().index(task)
    states = states_of(predictor.kept, predictor.layout)
    own = np.flatnonzero(states.used[place])
    return {
        "task": task,
        "cluster": int(estimator.partition_[place]),
        "n_states": _posterior(estimator.n_states_[place]),
        "kin": kin_of(estimator, task),
        "states": [
            {"state": int(states.state[i]), "name": states.name[i], "share": float(states.shares[place, i])}
            for i in own[np.argsort(-states.shares[place, own], kind="stable")]
        ],
    }


def one_text(about: dict[str, Any], least: float) -> str:
    """The same, to be read."""
    facts = [
        ("task", shown(about["task"])),
        ("cluster", str(about["cluster"])),
        ("states", _told(about["n_states"])),
    ]
    kin = [[shown(entry["task"]), entry["similarity"], str(entry["cluster"])] for entry in about["kin"]
           if entry["similarity"] >= least]  # fmt: skip
    states = [[str(entry["state"]), entry["name"], entry["share"]] for entry in about["states"]]
    return "\n".join(
        [
            fact_lines(facts),
            text_table(["kin", "similarity", "cluster"], kin) if kin else "no kin\n",
            text_table(["state", "shows", "share of steps"], states),
        ]
    )


def steps_table(predictor: Any, frame: pl.DataFrame, decoding: str) -> dict[str, list[Any]]:
    """The hidden state of every row, in the order of the table."""
    decoded = predictor.decode(frame, decoding=decoding)
    sequence = np.repeat(np.arange(len(decoded.lengths)), decoded.lengths)
    cluster = decoded.clusters[sequence]
    sure = decoded.probabilities[np.arange(len(sequence)), decoded.states]
    rows = np.arange(len(sequence)) if decoded.rows is None else decoded.rows
    back = np.empty(len(rows), dtype=np.int64)
    back[rows] = np.arange(len(rows))
    which = list(zip(cluster.tolist(), decoded.states.tolist(), strict=True))
    return {
        "cluster": [which[step][0] for step in back],
        "state": [which[step][1] for step in back],
        "name": [decoded.names[which[step]] for step in back],
        "probability": sure[back].tolist(),
    }


def segments_table(predictor: Any, frame: pl.DataFrame, decoding: str) -> dict[str, list[Any]]:
    """Runs of rows in one hidden state; from which to which place, where a column tells the order of rows."""
    from kinfolk.sequences.answers.segments import cut_into_segments

    decoded = predictor.decode(frame, decoding=decoding)
    found = cut_into_segments(decoded)
    column = predictor.known.order_column
    if decoded.rows is None or not len(decoded.rows):
        return found
    ends = np.cumsum(found["duration"])
    places = frame[column].to_list()
    first, last = decoded.rows[ends - found["duration"]], decoded.rows[ends - 1]
    beside = {"from": [places[row] for row in first], "to": [places[row] for row in last]}
    before = {name: found.pop(name) for name in ("task", "sequence", "start", "stop", "duration")}
    return {**before, **beside, **found}


def scores_table(predictor: Any, frame: pl.DataFrame) -> dict[str, list[Any]]:
    """How probable each sequence is, in all and for each step."""
    of = predictor.sequences_of(frame)
    found = predictor.score_samples(frame)
    return {
        **of,
        "log_likelihood": found.tolist(),
        "per_step": (found / np.asarray(of["n_steps"], dtype=float)).tolist(),
    }


def forecast_table(predictor: Any, frame: pl.DataFrame, n_steps: int, seed: int) -> dict[str, list[Any]]:
    """What comes after each sequence: of symbols probabilities, of numbers means, deviations and quantiles."""
    of = predictor.sequences_of(frame)
    found = predictor.forecast(frame, n_steps=n_steps, random_state=seed)
    titles = ["task", "sequence", "step", "column"]
    if found.probability:
        titles += ["value", "probability"]
    if found.mean:
        titles += ["mean", "deviation", *(f"quantile_{level:g}" for level in found.levels)]
    rows: list[dict[str, Any]] = []
    for i, (task, sequence) in enumerate(zip(of["task"], of["sequence"], strict=True)):
        for step in range(n_steps):
            where = {"task": task, "sequence": sequence, "step": step + 1}
            for column, shares in found.probability.items():
                rows += [
                    {**where, "column": str(column), "value": shown(value), "probability": float(share[i, step])}
                    for value, share in shares.items()
                ]
            for column, mean in found.mean.items():
                numbers = {"mean": float(mean[i, step]), "deviation": float(found.deviation[column][i, step])}
                for level, value in zip(found.levels, found.quantiles[column][i, step].tolist(), strict=True):
                    numbers[f"quantile_{level:g}"] = value
                rows.append({**where, "column": str(column), **numbers})
    return {title: [row.get(title) for row in rows] for title in titles}
