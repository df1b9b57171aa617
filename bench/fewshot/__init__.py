"""Few rows a task: our models and what people use, on real sets with many tasks (``python -m bench fewshot``).

- ``sets.toml`` names the sets, and ``sets`` reads them; ``splits`` draws rows to learn from and rows to judge by
- ``models`` is the table of our models, ``peers`` that of the others, tuned within the training rows by ``tuning``
- ``measures`` judges answers; ``cells`` runs one model on one split and keeps what came out, so that a run resumes
- ``marks`` are protocols of earlier studies
- ``ranks`` compares models over sets; ``page`` writes ``bench/FEWSHOT.md`` and draws the picture
"""
