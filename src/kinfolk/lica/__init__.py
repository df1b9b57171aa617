"""Multi-task linear models whose weights are sparse mixtures of latent independent sources (LICA)."""
