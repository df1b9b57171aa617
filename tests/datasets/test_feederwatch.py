"""The feeders load as their README counts them; what is left out of a task is what was seen too rarely there."""

import gzip

import numpy as np
import polars as pl
import pytest

from kinfolk.datasets.feederwatch import CIRCUMSTANCES, load_feederwatch


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Six checklists of two states and three species, in the format of the files."""
    folder = tmp_path / "feederwatch_wa_or"
    folder.mkdir()
    rows = [
        "SUB_ID,LOC_ID,STATE,LATITUDE,LONGITUDE,SEASON,Year,Month,Day,DAY1_AM,DAY1_PM,DAY2_AM,DAY2_PM,"
        "EFFORT_HRS_ATLEAST,SNOW_DEP_ATLEAST",
        "S1,L1,US-OR,45,-122,PFW_2021,2020,11,26,1,1,1,1,0.001,0.0",
        "S2,L1,US-OR,45,-122,PFW_2021,2021,1,2,1,0,0,0,1.001,",
        "S3,L2,US-OR,45,-122,PFW_2021,2021,4,2,0,0,0,0,8.001,15.001",
        "S4,L3,US-WA,47,-122,PFW_2021,2020,12,2,1,1,0,0,4.001,5.0",
        "S5,L3,US-WA,47,-122,PFW_2021,2021,2,2,1,1,0,0,,0.001",
        "S6,L4,US-WA,47,-122,PFW_2021,2021,3,2,1,1,0,0,1.001,0.0",
    ]
    (folder / "checklists.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    (folder / "species.csv").write_text(
        "column,species_code,common_name,scientific_name,n_checklists\n"
        "0,jay,Steller's Jay,Cyanocitta stelleri,3\n1,junco,Junco,Junco hyemalis,6\n2,wren,Wren,Troglodytes,2\n"
    )
    # Jay on S1, S2 and S4; junco on all; wren on S5 and S6.
    seen = [[0, 1], [0, 1], [1], [0, 1], [1, 2], [1, 2]]
    np.savez(
        folder / "counts.npz",
        data=np.ones(11, dtype=np.int32),
        indices=np.concatenate(seen).astype(np.int16),
        indptr=np.cumsum([0, *map(len, seen)]).astype(np.int32),
        shape=np.array([6, 3]),
    )
    monkeypatch.setenv("KINFOLK_DATA", str(tmp_path))


def test_rows_have_their_circumstances_and_their_site(made_up):
    birds = load_feederwatch()
    assert list(birds.data) == ["OR 2021", "WA 2021"]
    assert birds.data["OR 2021"].select(CIRCUMSTANCES).rows() == [
        ("November", "4", "under 1", "none"),
        ("January", "1", "1 to 4", "not given"),
        ("April", "0", "over 8", "over 15"),
    ]
    assert birds.data["WA 2021"]["hours watched"].to_list() == ["4 to 8", "not given", "1 to 4"]
    assert [site.tolist() for site in birds.site.values()] == [["L1", "L1", "L2"], ["L3", "L3", "L4"]]


def test_a_species_is_in_the_tasks_where_it_is_seen_often_enough_and_not_always(made_up):
    species = {
        share: [table.columns[len(CIRCUMSTANCES) :] for table in load_feederwatch(min_share=share).data.values()]
        for share in (1 / 3, 0.5, 1.0)
    }
    assert species == {
        1 / 3: [["Steller's Jay"], ["Steller's Jay", "Wren"]],
        0.5: [["Steller's Jay"], ["Wren"]],
        1.0: [[], []],
    }
    assert load_feederwatch().data["OR 2021"]["Steller's Jay"].to_list() == ["yes", "yes", "no"]


def test_a_share_that_is_none_is_refused(made_up):
    with pytest.raises(ValueError, match="min_share is 5, but must be a share from 0 to 1"):
        load_feederwatch(min_share=5)


def test_a_class_that_nobody_knows_is_named_with_its_column(made_up, tmp_path):
    path = tmp_path / "feederwatch_wa_or" / "checklists.csv.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"15.001", b"16.001")))
    with pytest.raises(ValueError, match=r"column 'SNOW_DEP_ATLEAST' holds 16\.001, but its classes are \[0\.0,"):
        load_feederwatch()


def test_where_the_files_are_not_there_one_sentence_says_so(monkeypatch):
    monkeypatch.delenv("KINFOLK_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="KINFOLK_DATA is not set: it names the folder that holds feederwatch"):
        load_feederwatch()


def test_the_real_feeders_have_the_checklists_and_sites_that_their_readme_counts():
    try:
        birds = load_feederwatch()
    except FileNotFoundError as absent:
        pytest.skip(f"the real data set feederwatch_wa_or is not here: {absent}")
    sizes = [table.height for table in birds.data.values()]
    assert (len(sizes), sum(sizes), min(sizes), max(sizes)) == (8, 48_270, 4_857, 7_378)
    assert len(np.unique(np.concatenate(list(birds.site.values())))) == 1_893
    for table in birds.data.values():
        shares = table[:, len(CIRCUMSTANCES) :].select((pl.all() == "yes").mean()).row(0)
        assert min(shares) >= 0.05
    columns = [set(table.columns) for table in birds.data.values()]
    assert set.union(*columns) != set.intersection(*columns), "variables must differ between tasks"
