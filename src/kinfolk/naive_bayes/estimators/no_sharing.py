"""No sharing: one naive Bayes model per task, all at once (thesis section 2.2; inference A.1.1)."""

from __future__ import annotations

from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.inference import no_sharing
from kinfolk.naive_bayes.inference.fitting import Sharing


class NoSharingNB(SharingNB):
    """Naive Bayes for every task by itself: the baseline, in which tasks learn nothing from each other.

    Tasks share no rows. By default they share hyper-parameters, which are learnt from all tasks because that predicts
    better on every real data set tried. With ``label_prior=1, feature_prior=1, temper=1`` they share nothing at all, as
    in the thesis.

    Fits a thousand tasks as fast as other packages fit a few. With unlabelled rows it is semi-supervised: their labels
    are drawn by Gibbs sampling along with everything else.

    Parameters
    ----------
    label_prior : float, array of shape (n_classes,), mapping or "learn", default="learn"
        Dirichlet pseudo-counts of the labels. "learn" draws the tasks' label rates towards the common ones, as far as
        they are alike: with few rows a task's own rates are little more than chance.
    feature_prior : float, sequence, mapping or "learn", default="learn"
        Dirichlet pseudo-counts of the feature values: one number, or per feature a number or an array of shape
        (values,) or (classes, values). "learn" is a
        strength for every feature and rates that all tasks have in common.
    temper : float or "learn", default="learn"
        Power, from 0 to 1, on the feature likelihood in predictions. Below 1 it makes up for naive Bayes counting
        correlated features twice. "learn" gives every feature its own, up to 2, so that training rows, each left out
        in turn, are predicted best; counts do not tell which values came together, so that with them alone it is 1.
        Evidence always uses 1.
    task_column : str or int, optional
        Column of ``X`` that holds the task, instead of ``task=``: for scikit-learn tools that route no metadata.
        To those that hold rows out, give ``cv=kinfolk.TaskKFold(5, task_column=...)``.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn where most rows to be answered are of tasks never seen (:class:`~kinfolk.UnseenWarning`).
    categorical_features : "auto" or sequence, default="auto"
        Columns to treat as categories. "auto" takes text, booleans, categoricals, and whole numbers with at most 64
        different values; other numbers are binned. Whole numbers with more values than ``bins`` are binned, too, where
        that makes the labels of the training rows more probable.
    bins : int or mapping, default=8
        Number of quantile bins of numeric columns, or for named columns a number or the inner edges.
    numeric : {"bin", "gaussian", "count", "auto"} or mapping, default="bin"
        What to do with numeric columns that are not categories: put them into bins, or take them as Gaussian or as
        Poisson counts, with parameters for each label. "auto" takes, column by column, what makes the training rows
        most probable, all tasks pooled, and weighs whole numbers of 17 to 64 values as categories too. A mapping says
        so for named columns, whatever "auto" would call categorical; others have bins.
    unlabelled : optional
        A value of ``y`` that marks a row without a label, beside ``None`` and NaN.
    n_chains, n_burn_in, n_draws : int, default=4, 100, 100
        Chains of the Gibbs sampler, sweeps thrown away and draws kept of each. Used where sampling is.
    random_state : int, RandomState or None
        Seed of the sampler.
    n_jobs : int or None
        Chains run side by side (threads, through joblib).
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which sampling, with unlabelled rows, keeps how far it got: a fit that was killed and is started
        again, with the same data, parameters and ``random_state``, goes on there and ends as if nothing had happened.

    Attributes
    ----------
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    partition_, similarity_ : arrays
        Cluster of each task, and the posterior probability that two tasks share.
    log_evidence_, log_evidence_kind_, log_evidence_error_
        Natural log of the evidence, what kind of number it is, and its standard error.
    label_distributions_, transduction_ : arrays
        For the rows of the last call to ``fit``: probabilities of the labels, and the most probable one.
    label_prior_, temper_ : arrays
        Pseudo-counts of the labels and powers of the features, as given or as learnt.
    feature_prior_ : dict
        Pseudo-counts of every feature's values (classes, values), as given or as learnt, by the feature's name.
    posterior_ : Fitted
        Everything that inference left behind.

    References
    ----------
    D. M. Roy, "Clustered Naive Bayes", M.Eng. thesis, MIT, 2006, sections 2.2 and A.1.1.

    Examples
    --------
    >>> from kinfolk import NoSharingNB
    >>> X = [["red"], ["blue"], ["red"], ["blue"]]
    >>> model = NoSharingNB(label_prior=1, feature_prior=1, temper=1)
    >>> model = model.fit(X, ["stop", "go", "go", "stop"], task=["ann", "ann", "bob", "bob"])
    >>> model.predict([["red"], ["red"]], task=["ann", "bob"]).tolist()
    ['stop', 'go']
    """

    _shares = False

    def _sharing(self) -> Sharing:
        return Sharing(no_sharing, self._options(), narrow=True)
