"""Small sets of tasks for reports."""

import numpy as np
import pandas as pd

HOSTILE = "<script>window.broken = 1</script>"


def kin(n_tasks=8, n_rows=30, seed=0, name="task {}".format):
    """Tasks of two kinds: what speaks for a label in the first half speaks against it in the second."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = rng.choice(["go", "stop"], len(task))
    speaks = ((y == "stop") == (task < n_tasks // 2))[:, np.newaxis] == (rng.random((len(task), 4)) < 0.8)
    table = pd.DataFrame(np.where(speaks, "red", "blue"), columns=list("abcd"))
    return table, y, np.array([name(t) for t in task])
