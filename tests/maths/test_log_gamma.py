"""Log Γ with numpy alone is that of SciPy."""

import numpy as np
from scipy import special

from kinfolk.maths.log_gamma import log_gamma


def test_log_gamma_is_that_of_scipy():
    x = np.geomspace(1e-12, 1e12, 400)
    np.testing.assert_allclose(log_gamma(x), special.gammaln(x), rtol=1e-13, atol=1e-12)
