"""What people use, each tuned within the training rows: scikit-learn three ways, boosting, mixed models, groups."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge

from bench.fewshot.encoding import Encoder
from bench.fewshot.measures import Numbers
from bench.fewshot.models import Answer, Model
from bench.fewshot.sets import Rows
from bench.fewshot.tuning import tuned

STRENGTHS = (0.01, 0.1, 1.0, 10.0)
TREES: tuple[dict[str, Any], ...] = ({"trees": 50, "depth": 3}, {"trees": 200, "depth": 3}, {"trees": 200, "depth": 6})
KINDS = ("classification", "regression")


def peers() -> dict[str, Model]:
    """All peers whose package is installed; ``missing`` names the others."""
    return {name: model for name, model in _table().items() if not model.package or find_spec(model.package)}


def missing() -> list[str]:
    """Packages that are not installed."""
    return sorted({model.package for model in _table().values() if model.package and not find_spec(model.package)})


def _table() -> dict[str, Model]:
    strengths = [{"C": c} for c in STRENGTHS]
    ways = {
        "linear, per task": (_per_task, strengths, "", KINDS),
        "linear, pooled": (_pooled, strengths, "", KINDS),
        "linear, task intercepts": (_intercepts, strengths, "", KINDS),
        "LightGBM": (_lightgbm, TREES, "lightgbm", KINDS),
        "CatBoost": (_catboost, TREES, "catboost", KINDS),
        "GPBoost": (_gpboost, TREES, "gpboost", KINDS),
        "mixed model": (_mixed, [{}], "statsmodels", KINDS),
        "scikit-lego groups": (_groups, strengths, "sklego", KINDS),
    }
    suffix = {"classification": "", "regression": ", numbers"}
    return {
        name + suffix[kind]: Model(kind, tuned(_for(fit, kind), kind, grid), package)
        for kind in KINDS
        for name, (fit, grid, package, kinds) in ways.items()
        if kind in kinds
    }


def _for(fit: Any, kind: str) -> Any:
    def fit_kind(train: Rows, seed: int, **settings: Any) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "classification" and len(np.unique(train.y)) < 2:
                return _constant(train)
            answer: Answer = fit(train, seed, kind, **settings)
        return answer

    return fit_kind


def _constant(train: Rows) -> Answer:
    rate = (train.y.sum() + 1.0) / (len(train.y) + 2.0)
    return lambda rows: (np.full(len(rows.y), rate), None)


def _linear(X: Numbers, y: Numbers, kind: str, C: float) -> Any:
    if kind == "classification":
        return LogisticRegression(C=C, max_iter=500).fit(X, y)
    return Ridge(alpha=1.0 / C).fit(X, y)


class _OneLabelToo(LogisticRegression):
    """Logistic regression that takes rows of one label alone too, as groups may have: all get its smoothed rate."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(np.unique(y)) > 1:
            return super().fit(X, y, sample_weight)
        self.classes_, self.n_features_in_ = np.array([0, 1]), np.shape(X)[1]
        rate = (np.sum(y) + 1.0) / (len(y) + 2.0)
        self.coef_, self.intercept_ = np.zeros((1, self.n_features_in_)), np.log([rate / (1.0 - rate)])
        return self


def _say(model: Any, X: Numbers, kind: str) -> Numbers:
    return np.asarray(model.predict_proba(X)[:, 1] if kind == "classification" else model.predict(X))


def _pooled(train: Rows, seed: int, kind: str, C: float) -> Answer:
    encoder = Encoder().fit(train)
    model = _linear(encoder.transform(train), train.y, kind, C)
    return lambda rows: (_say(model, encoder.transform(rows), kind), None)


def _with_tasks(encoder: Encoder, rows: Rows, tasks: list[str]) -> Numbers:
    return np.hstack([encoder.transform(rows), (rows.task[:, None] == np.array(tasks)).astype(float)])


def _intercepts(train: Rows, seed: int, kind: str, C: float) -> Answer:
    encoder, tasks = Encoder().fit(train), sorted(set(train.task.tolist()))
    model = _linear(_with_tasks(encoder, train, tasks), train.y, kind, C)
    return lambda rows: (_say(model, _with_tasks(encoder, rows, tasks), kind), None)


def _per_task(train: Rows, seed: int, kind: str, C: float) -> Answer:
    encoder = Encoder().fit(train)
    X, models = encoder.transform(train), {}
    for task in sorted(set(train.task.tolist())):
        its = train.task == task
        if kind == "regression" or len(np.unique(train.y[its])) == 2:
            models[task] = _linear(X[its], train.y[its], kind, C)
        else:
            models[task] = (train.y[its].sum() + 1.0) / (its.sum() + 2.0)
    general = train.y.mean()

    def answer(rows: Rows) -> tuple[Numbers, None]:
        found, features = np.full(len(rows.y), general), encoder.transform(rows)
        for task in set(rows.task.tolist()) & set(models):
            its, model = rows.task == task, models[task]
            found[its] = model if isinstance(model, float) else _say(model, features[its], kind)
        return found, None

    return answer


def _codes(rows: Rows, tasks: list[str]) -> NDArray[np.int64]:
    """Places of the rows' tasks; one more for those never seen."""
    place = {task: i for i, task in enumerate(tasks)}
    return np.array([place.get(task, len(tasks)) for task in rows.task.tolist()])


def _lightgbm(train: Rows, seed: int, kind: str, trees: int, depth: int) -> Answer:
    import lightgbm

    encoder, tasks = Encoder().fit(train), sorted(set(train.task.tolist()))
    builder = lightgbm.LGBMClassifier if kind == "classification" else lightgbm.LGBMRegressor
    model = builder(
        n_estimators=trees,
        max_depth=depth,
        learning_rate=0.05,
        random_state=seed,
        n_jobs=1,
        verbose=-1,
        min_child_samples=5,
    )

    def look(rows: Rows) -> Numbers:
        return np.column_stack([encoder.transform(rows), _codes(rows, tasks)])

    X = look(train)
    model.fit(X, train.y, categorical_feature=[X.shape[1] - 1])
    return lambda rows: (_say(model, look(rows), kind), None)


def _catboost(train: Rows, seed: int, kind: str, trees: int, depth: int) -> Answer:
    import catboost

    numbers = [name for name, kind_ in train.X.schema.items() if kind_.is_numeric()]
    others = [name for name in train.X.columns if name not in numbers]

    def look(rows: Rows) -> Any:
        frame = rows.X.with_columns(pl.col(others).cast(pl.String).fill_null("missing"), pl.Series("task", rows.task))
        return frame.with_columns(pl.col(numbers).cast(pl.Float64)).to_pandas()

    builder = catboost.CatBoostClassifier if kind == "classification" else catboost.CatBoostRegressor
    model = builder(
        iterations=trees, depth=depth, random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False
    )
    model.fit(look(train), train.y, cat_features=[*others, "task"])
    return lambda rows: (_say(model, look(rows), kind), None)


def _gpboost(train: Rows, seed: int, kind: str, trees: int, depth: int) -> Answer:
    import gpboost

    encoder = Encoder().fit(train)
    likelihood = "bernoulli_logit" if kind == "classification" else "gaussian"
    random = gpboost.GPModel(group_data=train.task, likelihood=likelihood)
    settings = {"max_depth": depth, "learning_rate": 0.05, "verbose": -1, "seed": seed, "num_threads": 1}
    settings["min_data_in_leaf"] = 5
    # Its steps are in units of the targets' variance: without a scale, trees of scores up to 70 hardly begin to learn.
    level, unit = (train.y.mean(), train.y.std() or 1.0) if kind == "regression" else (0.0, 1.0)
    data = gpboost.Dataset(encoder.transform(train), (train.y - level) / unit)
    model = gpboost.train(params=settings, train_set=data, gp_model=random, num_boost_round=trees)

    def answer(rows: Rows) -> tuple[Numbers, Numbers | None]:
        found = model.predict(
            data=encoder.transform(rows), group_data_pred=rows.task, predict_var=True, pred_latent=False
        )
        spread = unit * np.sqrt(found["response_var"]) if kind == "regression" else None
        return level + unit * np.asarray(found["response_mean"]), spread

    return answer


def _mixed(train: Rows, seed: int, kind: str) -> Answer:
    """Random intercepts: restricted maximum likelihood, or a variational posterior for labels."""
    from scipy.special import expit
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
    from statsmodels.regression.mixed_linear_model import MixedLM

    encoder, tasks = Encoder().fit(train), sorted(set(train.task.tolist()))

    def look(rows: Rows) -> Numbers:
        return np.column_stack([np.ones(len(rows.y)), encoder.transform(rows)])

    X, codes = look(train), _codes(train, tasks)
    if kind == "regression":
        fit = MixedLM(train.y, X, groups=train.task).fit(reml=True)
        own = np.array([float(np.asarray(fit.random_effects[task]).ravel()[0]) for task in tasks] + [0.0])
        fixed = np.asarray(fit.fe_params)
        return lambda rows: (look(rows) @ fixed + own[_codes(rows, tasks)], None)
    design = (codes[:, None] == np.arange(len(tasks))).astype(float)
    found = BinomialBayesMixedGLM(train.y, X, design, np.zeros(len(tasks), dtype=int), vcp_p=1.0, fe_p=2.0).fit_vb()
    own = np.append(np.asarray(found.vc_mean), 0.0)
    return lambda rows: (expit(look(rows) @ np.asarray(found.fe_mean) + own[_codes(rows, tasks)]), None)


def _groups(train: Rows, seed: int, kind: str, C: float) -> Answer:
    import pandas as pd
    from sklego.meta import GroupedPredictor, HierarchicalClassifier

    encoder = Encoder().fit(train)

    def look(rows: Rows) -> Any:
        return pd.DataFrame(encoder.transform(rows)).rename(columns=str).assign(task=rows.task)

    if kind == "classification":
        labels = HierarchicalClassifier(_OneLabelToo(C=C, max_iter=500), groups=["task"], shrinkage="relative")
        labels.fit(look(train), train.y.astype(int))
        return lambda rows: (np.asarray(labels.predict_proba(look(rows))[:, 1]), None)
    model = GroupedPredictor(Ridge(alpha=1.0 / C), groups=["task"], shrinkage="relative")
    model.fit(look(train), train.y)
    general, seen = Ridge(alpha=1.0 / C).fit(encoder.transform(train), train.y), sorted(set(train.task.tolist()))

    def answer(rows: Rows) -> tuple[Numbers, None]:
        found, known = general.predict(encoder.transform(rows)), np.isin(rows.task, seen)
        if known.any():  # it refuses groups that it has not seen where weights are shrunk
            found[known] = model.predict(look(rows)[known])
        return np.asarray(found), None

    return answer
