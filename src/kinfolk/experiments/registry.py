"""The experiments by name. Importing this costs nothing: an experiment's file is loaded when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinfolk.experiments.publishing import About, Outcome


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper, done again.

    Attributes
    ----------
    name : str
        On the command line.
    title : str
        One line about it.
    home : str
        The module that holds its ``ABOUT`` and its ``study(quick, seed)``.
    """

    name: str
    title: str
    home: str

    @property
    def about(self) -> About:
        """What the paper did and found, and what data stands in."""
        about: About = self._module().ABOUT
        return about

    @property
    def repeated(self) -> str | None:
        """The study's own parameter that says how often everything is drawn; None where it repeats nothing."""
        known = signature(self._module().study).parameters
        return next((name for name in ("n_repeats", "n_splits", "n_draws", "n_sets") if name in known), None)

    def run(
        self, output: Path, quick: bool = False, seed: int = 0, *, repeats: int | None = None, shown: bool = True
    ) -> Outcome:
        """Run it, write CSV, PNG and report, and print the report.

        Parameters
        ----------
        output : Path
            Folder for ``NAME.csv``, ``NAME.png`` and ``NAME.md``.
        quick : bool
            Whether to do with fewer repetitions and be done in seconds.
        seed : int
            Decides everything that chance decides: the data, the splits and the samplers.
        repeats : int, optional
            How many draws, splits or repeats of every setting are made; by default those of the study.
        shown : bool
            Whether to print the report on standard output.

        Returns
        -------
        Outcome
        """
        from kinfolk.experiments.cells import kept_in
        from kinfolk.experiments.publishing import publish

        module = self._module()
        options: dict[str, Any] = {"quick": quick, "seed": seed}
        if repeats is not None:
            if self.repeated is None:
                raise ValueError(f"{self.name} repeats nothing: leave --repeats out")
            options[self.repeated] = repeats
        # A study that takes hours keeps what it has, and goes on from there if it was stopped.
        cells = Path(output) / f"{self.name}.partial"
        if "kept" in signature(module.study).parameters:
            cells.mkdir(parents=True, exist_ok=True)
            options["kept"] = cells / f"{version('kinfolk')} {'quick ' if quick else ''}{seed}.jsonl"
        with kept_in(cells, self.name, quick, seed):
            study = module.study(**options)
        outcome = publish(Path(output), self.name, self.title, module.ABOUT, study)
        rmtree(cells, ignore_errors=True)
        if shown:
            from rich.console import Console
            from rich.markdown import Markdown

            console = Console()
            console.print(Markdown(outcome.report))
            for path in (outcome.csv, outcome.png, outcome.markdown):
                console.print(f"wrote {path}", soft_wrap=True, highlight=False, markup=False)
        return outcome

    def _module(self) -> Any:
        return import_module(self.home)


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "ijcai-figure-3",
            "Roy and Kaelbling (2007), figure 3: five users with few examples, all others known",
            "kinfolk.experiments.clustered_naive_bayes.ijcai_figure_3",
        ),
        Experiment(
            "ijcai-figure-4",
            "Roy and Kaelbling (2007), figure 4: the trees that BHC finds as examples are added",
            "kinfolk.experiments.clustered_naive_bayes.ijcai_figure_4",
        ),
        Experiment(
            "ijcai-figure-5",
            "Roy and Kaelbling (2007), figure 5: what clustering gains over no sharing, all users",
            "kinfolk.experiments.clustered_naive_bayes.ijcai_figure_5",
        ),
        Experiment(
            "lica-figure-2-rcv1",
            "Zhang, Ghahramani and Yang (2005), figure 2, right: all topics of RCV1, few documents",
            "kinfolk.experiments.lica.figure_2_rcv1",
        ),
        Experiment(
            "lica-figure-2-reuters",
            "Zhang, Ghahramani and Yang (2005), figure 2, left: nine topics of Reuters, few documents",
            "kinfolk.experiments.lica.figure_2_reuters",
        ),
        Experiment(
            "lica-numeric",
            "Zhang, Ghahramani and Yang (2005), on other sets: landmine, ratings of computers, schools",
            "kinfolk.experiments.lica.numeric",
        ),
        Experiment(
            "lica-synthetic",
            "Zhang, Ghahramani and Yang (2005), section 2: whether the sources of made-up tasks are found",
            "kinfolk.experiments.lica.synthetic",
        ),
        Experiment(
            "networks-accuracy",
            "Structures of eight known networks, beside those that other packages find",
            "kinfolk.experiments.networks.accuracy",
        ),
        Experiment(
            "networks-bhd",
            "Azzimonti, Corani and Scutari (2022): one structure of related tables, by a hierarchical score",
            "kinfolk.experiments.networks.bhd",
        ),
        Experiment(
            "networks-figure-1",
            "Niculescu-Mizil and Caruana (2012), figure 1: how little branch and bound evaluates",
            "kinfolk.experiments.networks.figure_1",
        ),
        Experiment(
            "networks-figure-2",
            "Niculescu-Mizil and Caruana (2012), figure 2: what joint learning gains on ALARM, by the penalty",
            "kinfolk.experiments.networks.figure_2",
        ),
        Experiment(
            "networks-figure-3",
            "Niculescu-Mizil and Caruana (2012), figure 3: what joint learning gains on INSURANCE-IND, by the penalty",
            "kinfolk.experiments.networks.figure_3",
        ),
        Experiment(
            "networks-figure-4",
            "Niculescu-Mizil and Caruana (2012), figure 4: separate, identical, pooled and joint learning",
            "kinfolk.experiments.networks.figure_4",
        ),
        Experiment(
            "networks-figure-5",
            "Niculescu-Mizil and Caruana (2012), figure 5: separate and joint learning, by the number of rows",
            "kinfolk.experiments.networks.figure_5",
        ),
        Experiment(
            "networks-figure-7",
            "Niculescu-Mizil and Caruana (2012), figure 7: birds at other feeders, by the penalty and the prior",
            "kinfolk.experiments.networks.figure_7",
        ),
        Experiment(
            "networks-figure-8",
            "Niculescu-Mizil and Caruana (2012), figure 8: birds at other feeders, by the number of rows",
            "kinfolk.experiments.networks.figure_8",
        ),
        Experiment(
            "sequences-mocap",
            "Fox, Hughes, Sudderth and Jordan (2014): exercises found in six recordings of movement",
            "kinfolk.experiments.sequences.mocap",
        ),
        Experiment(
            "sequences-music",
            "Ni, Carin and Dunson (2007), figures 6 and 7: ten clips of music, from a few seconds of each",
            "kinfolk.experiments.sequences.music",
        ),
        Experiment(
            "sequences-synthetic",
            "Ni, Carin and Dunson (2007), figures 4 and 5: whether three clusters of twelve tasks are found",
            "kinfolk.experiments.sequences.synthetic",
        ),
        Experiment(
            "sequences-vowels",
            "Ni, Carin and Dunson (2007), on other data: nine speakers, told apart by few utterances",
            "kinfolk.experiments.sequences.vowels",
        ),
        Experiment(
            "sharing-real",
            "Roy (2006), on other sets: six real ones, every way to share, and their average",
            "kinfolk.experiments.clustered_naive_bayes.sharing_real",
        ),
        Experiment(
            "thesis-evidence",
            "Roy (2006), equations 4.2, 4.7 and 4.15: which model the evidence favours",
            "kinfolk.experiments.clustered_naive_bayes.thesis_evidence",
        ),
        Experiment(
            "thesis-figure-2-5",
            "Roy (2006), figure 2-5: samples of the noisy Dirichlet",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_2_5",
        ),
        Experiment(
            "thesis-figure-2-7",
            "Roy (2006), figure 2-7: the Chinese restaurant process",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_2_7",
        ),
        Experiment(
            "thesis-figure-4-1",
            "Roy (2006), figure 4-1: every user's learning curve without sharing",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_1",
        ),
        Experiment(
            "thesis-figure-4-2",
            "Roy (2006), figure 4-2: what two users' models make of each feature",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_2",
        ),
        Experiment(
            "thesis-figure-4-3",
            "Roy (2006), figure 4-3: every user's learning curve with complete sharing",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_3",
        ),
        Experiment(
            "thesis-figure-4-4",
            "Roy (2006), figure 4-4: no sharing and complete sharing, every request left out",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_4",
        ),
        Experiment(
            "thesis-figure-4-5",
            "Roy (2006), figure 4-5: evidence ratios by the number of data points",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_5",
        ),
        Experiment(
            "thesis-figure-4-6",
            "Roy (2006), figure 4-6: the Bell numbers, and the prior of a partition",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_6",
        ),
        Experiment(
            "thesis-figure-4-7",
            "Roy (2006), figure 4-7: all three models, every request left out",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_7",
        ),
        Experiment(
            "thesis-figure-4-8",
            "Roy (2006), figure 4-8: decisions under asymmetric losses",
            "kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_8",
        ),
        Experiment(
            "thesis-real",
            "Roy (2006), chapter 4 on real data: hospitals, districts, communities",
            "kinfolk.experiments.clustered_naive_bayes.thesis_real",
        ),
        Experiment(
            "thesis-section-2-4",
            "Roy (2006), section 2.4: one prototype for two groups of tasks",
            "kinfolk.experiments.clustered_naive_bayes.thesis_section_2_4",
        ),
        Experiment(
            "thesis-table-4-1",
            "Roy (2006), table 4.1: the most common partition of users",
            "kinfolk.experiments.clustered_naive_bayes.thesis_table_4_1",
        ),
    )
}


def find(name: str) -> Experiment:
    """Find an experiment by its name.

    Examples
    --------
    >>> find("ijcai-figure-4").title
    'Roy and Kaelbling (2007), figure 4: the trees that BHC finds as examples are added'
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
