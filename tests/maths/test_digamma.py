"""The compiled digamma is that of SciPy."""

import numpy as np
import pytest
from scipy import special

from kinfolk.maths.digamma import digamma


@pytest.mark.parametrize("x", np.geomspace(1e-8, 1e9, 60))
def test_digamma_is_that_of_scipy(x):
    assert digamma(x) == pytest.approx(special.digamma(x), rel=1e-12, abs=1e-12)
