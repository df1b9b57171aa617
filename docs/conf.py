"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]
os.environ.setdefault("MPLBACKEND", "Agg")

import kinfolk  # noqa: E402

project = "kinfolk"
author = "The kinfolk developers"
copyright = "the kinfolk developers"
version = release = kinfolk.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery", "gallery/*.rst", "_ext"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "kinfolk"
html_static_path = ["_static"]
html_css_files = ["kinfolk.css"]
html_extra_path = ["llms.txt"]
RESULTS = HERE.parent / "results"
if RESULTS.is_dir():
    # The page of all claims, with the numbers and the pictures that it links.
    from kinfolk.experiments.claims import PAGE, page_of

    EXTRA = HERE / "_build" / "extra"
    EXTRA.mkdir(parents=True, exist_ok=True)
    (EXTRA / PAGE).write_text(page_of(RESULTS), encoding="utf-8")
    for made in (*RESULTS.glob("*.csv"), *RESULTS.glob("*.png")):
        shutil.copy(made, EXTRA)
    html_extra_path.append("_build/extra")
html_math_renderer = "mathml"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 3,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "changes": [], "benchmarks": []}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["pictures"],
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_signature": False,
    # What an example draws is on its page; that it returned axes need not be.
    "capture_repr": (),
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "min_reported_time": 60,
    "write_computation_times": False,
    "show_memory": False,
}
suppress_warnings = ["config.cache"]
