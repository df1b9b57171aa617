"""Long work shows progress on a terminal without being asked, once, and can be told not to."""

import inspect
import io
import pickle

import joblib
import numpy as np
import pytest

import kinfolk
from kinfolk import AveragedNB, progress
from kinfolk.pieces import as_they_come
from kinfolk.progress import no_progress, progress_bar, progress_wanted


class Terminal(io.StringIO):
    """Somebody who looks on."""

    def isatty(self):
        return True


@pytest.fixture
def watched(monkeypatch):
    """A function that opens the terminal once the test runs, since pytest opens its own standard error for each."""

    def look_on():
        seen = Terminal()
        monkeypatch.setattr("sys.stderr", seen)
        monkeypatch.setenv("TERM", "xterm")
        return seen

    return look_on


def test_no_estimator_shows_or_hides_progress_without_being_asked():
    """Each leaves it to whether somebody looks on."""
    for name in kinfolk.__all__:
        parameters = getattr(getattr(kinfolk, name), "_get_param_names", list)()
        if "verbose" in parameters:
            assert inspect.signature(getattr(kinfolk, name)).parameters["verbose"].default is None, name


def test_work_of_less_than_a_second_has_no_bar(watched):
    terminal = watched()
    with progress_bar("Counting", 3, progress_wanted(None)) as advance:
        advance(3)
    assert terminal.getvalue() == ""


def test_longer_work_has_one_without_being_asked(watched, monkeypatch):
    terminal = watched()
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress_bar("Counting", 3, progress_wanted(None)) as advance:
        advance(2)
    assert "Counting" in terminal.getvalue()
    assert "2/3" in terminal.getvalue()


def test_it_can_be_told_not_to(watched, monkeypatch):
    terminal = watched()
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress_bar("Counting", 3, progress_wanted(False)) as advance:
        advance(3)
    assert terminal.getvalue() == ""


def test_nobody_is_told_where_there_is_no_terminal(capsys):
    assert not progress_wanted(None)
    assert progress_wanted(True)


def test_there_is_one_bar_for_work_inside_work(watched, monkeypatch):
    terminal = watched()
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress_bar("Outer", 1, True), progress_bar("Inner", 1, True) as advance:
        advance(1)
    assert "Outer" in terminal.getvalue()
    assert "Inner" not in terminal.getvalue()
    with progress_bar("Later", 1, True):
        pass
    assert "Later" in terminal.getvalue()


@pytest.mark.parametrize("verbose", [None, False])
def test_estimators_show_it_unless_told_not_to(watched, monkeypatch, verbose):
    terminal = watched()
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    X, y, task = np.tile([["a"], ["b"]], (20, 1)), np.tile([0, 1], 20), np.repeat(list("wxyz"), 10)
    AveragedNB(n_folds=2, random_state=0, verbose=verbose).fit(X, y, task=task)
    assert ("Fitting models" in terminal.getvalue()) == (verbose is None)
    assert "Sampling" not in terminal.getvalue()


def test_a_bar_that_is_sent_to_another_process_takes_no_notice_of_steps():
    with progress_bar("Working", 3, True) as advance:
        assert pickle.loads(pickle.dumps(advance)) is no_progress


def test_a_worker_on_another_machine_has_nobody_to_tell():
    told = []
    with progress.told_by_processes(told.append) as tell:
        tell(2)
        elsewhere = progress._Tally(tell.path.with_name("another machine's") / "steps")
        elsewhere(3)
    assert sum(told) == 2


def test_a_backend_that_gives_all_results_at_the_end_will_do():
    class AtTheEnd(joblib.parallel.ThreadingBackend):
        supports_return_generator = False

    joblib.register_parallel_backend("at the end", AtTheEnd)
    with joblib.parallel_config("at the end"):
        with pytest.raises(ValueError, match="does not support return_as"):
            joblib.Parallel(return_as="generator")
        assert list(as_they_come(joblib.delayed(abs)(number) for number in (-1, 2))) == [1, 2]
