"""Parts of sequences, and work cut into pieces, against slicing one by one."""

from itertools import pairwise
from threading import Barrier, get_ident

import numpy as np
import pytest

from kinfolk.sequences.inference.threads import pieces, seeds, threads
from kinfolk.sequences.model.sequences import Sequences

CODES, NUMBERS = np.arange(12), np.arange(24.0).reshape(12, 2)
DATA = Sequences((CODES, NUMBERS), np.array([0, 3, 3, 7, 8, 12]), np.array([0, 2, 3, 5]))


def one_by_one(data, task):
    """Lists of a task's sequences, one for each channel."""
    runs = list(pairwise(data.bounds))[data.task_bounds[task] : data.task_bounds[task + 1]]
    return [[channel[start:stop].tolist() for start, stop in runs] for channel in data.observations]


@pytest.mark.parametrize("tasks", [[2, 0], [1], [0, 1, 2], [1, 1]])
def test_chosen_tasks_keep_their_sequences_in_the_order_asked_for(tasks):
    chosen = DATA.of_tasks(tasks)
    assert chosen.n_tasks == len(tasks)
    for new, old in enumerate(tasks):
        assert one_by_one(chosen, new) == one_by_one(DATA, old)
        assert chosen.observations[0][chosen.steps_of(new)].tolist() == CODES[DATA.steps_of(old)].tolist()


def test_a_run_of_tasks_is_those_tasks_without_a_copy():
    run = DATA.between(1, 3)
    assert [one_by_one(run, j) for j in range(2)] == [one_by_one(DATA, j) for j in (1, 2)]
    assert np.shares_memory(run.observations[1], NUMBERS)


def test_every_step_knows_its_task():
    assert DATA.task_of_step.tolist() == [0] * 3 + [1] * 4 + [2] * 5


@pytest.mark.parametrize("seed", range(5))
def test_pieces_cover_all_items_and_keep_to_their_limits(seed):
    lengths = np.random.default_rng(seed).integers(0, 9, size=40)
    cut = list(pieces(np.concatenate([[0], np.cumsum(lengths)]), 10, 4))
    assert [i for first, last in cut for i in range(first, last)] == list(range(40))
    for first, last in cut:
        assert last - first == 1 or (lengths[first:last].sum() <= 10 and last - first <= 4)


def test_threads_give_results_in_order_and_pass_errors_on():
    with threads(3) as parallel:
        assert parallel(lambda x: x * x, range(20)) == [x * x for x in range(20)]
        with pytest.raises(ZeroDivisionError):
            parallel(lambda x: 1 // x, [1, 0])


def test_an_error_in_any_thread_is_passed_on_and_the_threads_go_on_working():
    both_are_in = Barrier(2, timeout=10)
    caller = get_ident()

    def fails_in_the_helper(_):
        both_are_in.wait()
        if get_ident() != caller:
            raise KeyError("helper")

    with threads(2) as parallel:
        with pytest.raises(KeyError, match="helper"):
            parallel(fails_in_the_helper, range(2))
        assert parallel(abs, [-1, 2]) == [1, 2]
        assert parallel(abs, []) == []


def test_seeds_differ_from_each_other_and_repeat_with_the_seed_of_the_source():
    first, again = (seeds(np.random.default_rng(0), 3) for _ in range(2))
    assert len(set(first)) == 3
    assert first == again
