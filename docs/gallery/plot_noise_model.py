"""
The prototype's noise
=====================

Samples of tasks' rates around one prototype, for several strengths of the noise.
"""

import kinfolk

kinfolk.plots.noise_model()
