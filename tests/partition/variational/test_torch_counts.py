"""Counts on a device give what counts in memory give."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from kinfolk.maths.dirichlet import dirichlet_product, log_marginals
from kinfolk.partition.variational import torch_counts
from kinfolk.partition.variational.few_tasks import cluster_few
from kinfolk.partition.variational.mean_field import Clusters, expectations
from kinfolk.partition.variational.memoised import converge_in_batches
from kinfolk.partition.variational.mixture import fit_clusters
from kinfolk.partition.variational.task_counts import CountsInMemory
from kinfolk.partition.variational.torch_counts import TorchCounts, load_torch

N_VALUES, N_GROUPS = 4, 6
PRODUCT = dirichlet_product(np.full(N_GROUPS * N_VALUES, 0.8), np.arange(0, N_GROUPS * N_VALUES + 1, N_VALUES), 0)


def counts_and_clusters(dtype=np.uint8, n_tasks=300, n_rows=30):
    rng = np.random.default_rng(0)
    rates = rng.dirichlet(np.ones(N_VALUES), size=(3, N_GROUPS))
    cluster = rng.integers(3, size=n_tasks)
    counts = np.stack([rng.multinomial(n_rows, rates[cluster, g]) for g in range(N_GROUPS)], axis=1)
    counts = counts.reshape(n_tasks, -1).astype(dtype)
    summed = np.zeros((3, counts.shape[1]))
    np.add.at(summed, cluster, counts)
    return counts, Clusters(summed, np.bincount(cluster).astype(float), -np.inf)


def test_without_torch_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"kinfolk\[gpu\]"):
        load_torch()


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("uint8", "uint8"),
        ("uint16", "int32"),
        ("uint32", "int64"),
        ("uint64", "int64"),
        ("int32", "int32"),
        ("float32",) * 2,
    ],
)
def test_counts_keep_their_values_in_a_type_that_torch_knows(given, known):
    counts = np.array([[0, 200]], dtype=given)
    found = torch_counts._known_to_torch(counts)
    assert found.dtype == known
    assert found.tolist() == counts.tolist()


def test_clustering_on_a_device_needs_no_compiler():
    folder = "kinfolk.partition.variational"
    code = f"import {folder}.mixture, {folder}.torch_counts, sys; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float64])
def test_both_give_the_same_numbers(dtype):
    pytest.importorskip("torch")
    counts, clusters = counts_and_clusters(dtype)
    here, there = CountsInMemory(counts), TorchCounts(counts, "cpu", block=77)
    expected = expectations(clusters, PRODUCT, 1.0)
    for ours, theirs in zip(here.sweep(*expected), there.sweep(*expected), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-12)
    np.testing.assert_allclose(there.log_norms(*expected), here.log_norms(*expected), rtol=1e-12)
    np.testing.assert_allclose(there.own_log_marginals(PRODUCT), log_marginals(counts, PRODUCT), rtol=1e-9)
    np.testing.assert_array_equal(there.sample(np.array([4, 2])), counts[[4, 2]])
    np.testing.assert_array_equal(there.subset(np.array([4, 2])).sample(np.array([1])), counts[[2]])
    (_, shares), *_ = here.responsibilities(*expected)
    np.testing.assert_allclose(np.concatenate([r for _, r in there.responsibilities(*expected)]), shares, atol=1e-12)


def test_both_end_with_the_same_clusters():
    pytest.importorskip("torch")
    counts, clusters = counts_and_clusters(n_tasks=1_500)
    few = partial(cluster_few, groups=PRODUCT, concentration=1.0)
    for fit in (
        lambda data: fit_clusters(data, PRODUCT, 1.0, np.random.default_rng(0), few),
        lambda data: fit_clusters(data, PRODUCT, 1.0, np.random.default_rng(0)),
        lambda data: converge_in_batches(data, clusters, PRODUCT, 1.0, 400),
    ):
        ours, theirs = fit(CountsInMemory(counts)), fit(TorchCounts(counts, "cpu"))
        assert len(theirs.sizes) == len(ours.sizes)
        assert theirs.bound == pytest.approx(ours.bound, rel=1e-10)


def test_single_precision_keeps_the_bound_to_a_thousandth_of_a_nat_a_task():
    torch = pytest.importorskip("torch")
    counts, clusters = counts_and_clusters(n_tasks=2_000, n_rows=100)
    expected = expectations(clusters, PRODUCT, 1.0)
    exact = CountsInMemory(counts).sweep(*expected).log_norm
    assert TorchCounts(counts, "cpu", dtype=torch.float32).sweep(*expected).log_norm == pytest.approx(exact, abs=2.0)


def test_parts_and_counts_on_the_device_are_not_copied():
    torch = pytest.importorskip("torch")
    counts = torch.ones((10, N_GROUPS * N_VALUES), dtype=torch.uint8)
    data = TorchCounts(counts, "cpu")
    assert data.counts.data_ptr() == counts.data_ptr()
    assert [part.n_tasks for part in data.parts(4)] == [4, 4, 2]
    assert data.parts(4)[0].counts.data_ptr() == counts.data_ptr()
