"""How the assistant speaks: gettext catalogues (``de.po``), clocks, and the days and months of a language."""
