"""Threads of BLAS are put back once nobody asks for one alone any more, in whatever order they leave."""

from threadpoolctl import threadpool_info, threadpool_limits

from kinfolk.maths.blas import one_blas_thread


def n_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_what_it_had_outside():
    with threadpool_limits(2, user_api="blas"):
        assert n_threads() == {2}
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {2}


def test_the_last_one_out_puts_threads_back():
    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert n_threads() == {1}
        second.__exit__(None, None, None)
        assert n_threads() == {2}
