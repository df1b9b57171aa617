"""Work in threads gives what it gives one by one, and what goes wrong in it is told."""

import threading
import time

import numpy as np
import pytest

from kinfolk.sequences.inference.threads import tapering, threads


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 8])
@pytest.mark.parametrize("n_items", [0, 1, 5, 100])
def test_results_come_in_the_order_of_the_items(n_jobs, n_items):
    def square(item):
        # The first ones take longer, so that later ones are done before.
        time.sleep(1e-2 if item < 2 else 1e-4)
        return item * item

    with threads(n_jobs) as parallel:
        assert parallel(square, range(n_items)) == [item * item for item in range(n_items)]


def test_items_are_worked_on_side_by_side():
    both = threading.Barrier(2, timeout=20)
    with threads(2) as parallel:
        workers = parallel(lambda _: (both.wait(), threading.get_ident())[1], range(2))
    assert len(set(workers)) == 2


@pytest.mark.parametrize("bad", [0, 99])
def test_what_goes_wrong_in_a_thread_is_told_and_the_threads_live_on(bad):
    def work(item):
        # Long enough that both threads have begun.
        time.sleep(1e-4)
        if item == bad:
            raise ValueError(f"item {item}")
        return item

    with threads(2) as parallel:
        with pytest.raises(ValueError, match=f"item {bad}"):
            parallel(work, range(100))
        assert parallel(abs, [-1, -2]) == [1, 2]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("who", ["caller", "helper"])
def test_what_goes_wrong_stops_all_threads_at_once(error, who):
    caller, done = threading.get_ident(), []

    def work(item):
        time.sleep(1e-3)
        if (threading.get_ident() == caller) == (who == "caller"):
            raise error(f"item {item}")
        done.append(item)

    with threads(3) as parallel:
        with pytest.raises(error):
            parallel(work, range(300))
        # Nobody is at work any more, and most was never begun; on a busy machine a helper may be late to go wrong.
        n_done = len(done)
        time.sleep(0.05)
        assert len(done) == n_done < 150
        assert parallel(abs, [-1, -2]) == [1, 2]


@pytest.mark.parametrize("pause", [0.0, 0.2])
def test_helpers_do_what_comes_at_once_and_what_comes_after_they_fell_asleep(pause):
    both = threading.Barrier(2, timeout=20)
    with threads(2) as parallel:
        for _ in range(3):
            time.sleep(pause)
            assert len(set(parallel(lambda _: (both.wait(), threading.get_ident())[1], range(2)))) == 2


@pytest.mark.parametrize("n_items", [1, 7, 12, 500])
def test_tapering_pieces_cover_all_items_and_get_shorter(n_items):
    bounds = np.arange(n_items + 1) * 700
    runs = list(tapering(bounds, times=3))
    assert [first for first, _ in runs] == [0, *(last for _, last in runs[:-1])]
    assert runs[-1][1] == n_items
    sizes = [last - first for first, last in runs]
    assert sizes == sorted(sizes, reverse=True)
    assert len(runs) < 3 + 2 * np.log2(n_items + 1) + n_items / 15
