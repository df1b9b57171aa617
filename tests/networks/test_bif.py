"""BIF files: what is written comes back to the last bit, and what is damaged gets no further than one sentence."""

import gzip
import os
import random
from pathlib import Path

import numpy as np
import pytest

from kinfolk.networks.answers import bif
from kinfolk.networks.answers.bif import bif_text, parse_bif, read_bif, write_bif
from kinfolk.networks.model.network import make_network

# Variables, arcs, free parameters and the most parents, as the README of the files counts them.
COUNTS = {
    "alarm": (37, 46, 509, 4),
    "insurance": (27, 52, 1008, 3),
    "asia": (8, 8, 18, 2),
    "cancer": (5, 4, 10, 2),
    "earthquake": (5, 4, 10, 2),
    "survey": (6, 6, 21, 2),
    "sachs": (11, 17, 178, 3),
    "child": (20, 25, 230, 2),
    "water": (32, 66, 10083, 5),
    "mildew": (35, 46, 540150, 3),
    "barley": (48, 84, 114005, 4),
    "hepar2": (70, 123, 1453, 6),
    "andes": (223, 338, 1157, 6),
}


def file_of(name):
    root = os.environ.get("KINFOLK_DATA")
    if not root or not (Path(root) / "bayesnets" / f"{name}.bif.gz").is_file():
        pytest.skip(f"the network {name} is not here: KINFOLK_DATA does not name a folder with bayesnets/{name}.bif.gz")
    return Path(root) / "bayesnets" / f"{name}.bif.gz"


def same(a, b):
    return a[:3] == b[:3] and all(s.tobytes() == t.tobytes() for s, t in zip(a.tables, b.tables, strict=True))


def network_of(cards, parents, seed, names=None, states=None):
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.ones(cards[v]), [cards[p] for p in its]) for v, its in enumerate(parents)]
    names = names or [f"v{v}" for v in range(len(cards))]
    states = states or [[f"s{k}" for k in range(card)] for card in cards]
    return make_network(names, states, parents, tables)


@pytest.fixture
def small():
    """Names from real files that are not identifiers, and parents out of order."""
    states = [["<5", "5-12", "12+"], ["Asy/Patch", "3"], ["0_00_kg_m2", "table"], ["default", "'"]]
    return network_of([3, 2, 2, 2], [[2, 1], [], [1], [0, 2]], 0, ["RUQO2", "CO2.x", "état", "property"], states)


WET = """
variable rain { type discrete [2] { no, yes }; }
variable wet { type discrete [3] { dry, damp, soaked }; }
probability ( rain ) { table 0.8, 0.2; }
probability ( wet | rain ) { (no) 0.9, 0.06, 0.04; (yes) 0.1, 0.2, 0.7; }
"""


# --- files as they are found


@pytest.mark.parametrize("name", COUNTS)
def test_a_published_network_has_the_counts_of_its_readme_and_comes_back(name):
    network = read_bif(file_of(name))
    most = max(map(len, network.parents))
    assert (len(network.variables), network.n_arcs, network.n_free_parameters, most) == COUNTS[name]
    assert same(parse_bif(bif_text(network)), network)


def test_the_states_of_child_survive():
    child = read_bif(file_of("child"))
    states = dict(zip(child.variables, child.states, strict=True))
    assert states["LowerBodyO2"] == ("<5", "5-12", "12+")
    assert states["ChestXray"][-1] == "Asy/Patch"


def test_every_form_of_the_format_is_read():
    """Blanks for commas, quotes, properties, comments, a header without a bar, and blocks in any order."""
    network = parse_bif(
        """// dog } problem
        network "Dog-Problem" { /* several { lines
        */ property "credal; set" ; property position = (1, 2); }
        probability ( "light on" "family-out" ) { property x; default 0.4 0.6; (true) 0.6, 0.4; }
        variable "family-out" { property "position = (257, 99)" ; type discrete[2] { "true" "false" }; }
        probability("family-out") { table 0.15 0.85 ; }
        variable "light on" //2 values
        { type discrete [ 2 ] { very bright, dark }; property a b; };
        """
    )
    assert network.variables == ("family-out", "light on")
    assert network.states == (("true", "false"), ("very bright", "dark"))
    assert network.parents == ((), (0,))
    assert network.tables[1].tolist() == [[0.6, 0.4], [0.4, 0.6]]


@pytest.mark.parametrize("comment", ["/* a { b */", "// a { b\n"])
def test_a_comment_of_either_form_alone_is_left_out(comment):
    network = parse_bif(f"{comment} variable a {{ type discrete [2] {{ 0, 1 }}; }} probability ( a ) {{ table 1, 0; }}")
    assert network.variables == ("a",)


def test_in_a_whole_table_the_childs_state_varies_slowest():
    """The order of the interchange format: probabilities of the child's first state for all configurations first."""
    table = "table 0.1 0.2 0.3 0.4 0.15 0.25 0.9 0.8 0.7 0.6 0.85 0.75;"
    network = parse_bif(
        "variable a { type discrete [2] { 0, 1 }; } variable b { type discrete [3] { 0, 1, 2 }; }"
        "variable c { type discrete [2] { 0, 1 }; } probability ( a ) { table 1, 0; }"
        f"probability ( b ) {{ table 0, 0, 1; }} probability ( c | a, b ) {{ {table} }}"
    )
    assert network.tables[2][..., 0].tolist() == [[0.1, 0.2, 0.3], [0.4, 0.15, 0.25]]


def test_rows_may_name_parents_in_any_order_of_the_header():
    text = (
        WET
        + "variable c { type discrete [2] { x, y }; } probability ( c | wet, rain ) { (damp, yes) 1, 0; default 0, 1; }"
    )
    network = parse_bif(text)
    assert network.parents[2] == (0, 1)
    assert np.argwhere(network.tables[2][..., 0] == 1).tolist() == [[1, 1]]


def test_a_row_that_sums_to_one_but_for_printing_is_scaled():
    network = parse_bif(WET.replace("0.1, 0.2, 0.7", "0.3333333, 0.3333333, 0.3333333"))
    assert network.tables[1][1].tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)


# --- there and back


@pytest.mark.parametrize("ending", ["bif", "bif.gz"])
def test_a_written_network_comes_back_to_the_last_bit(small, tmp_path, ending):
    path = tmp_path / f"small.{ending}"
    write_bif(small, path)
    assert same(read_bif(path), small)
    assert path.read_bytes().startswith(b"\x1f\x8b") == (ending == "bif.gz")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    before = path.read_bytes()
    write_bif(read_bif(path), path)
    assert path.read_bytes() == before


def test_a_written_network_begins_with_the_block_that_other_readers_ask_for(small):
    assert bif_text(small).startswith("network ")


def test_probabilities_of_every_size_come_back():
    rng = np.random.default_rng(0)
    for seed in range(30):
        network = network_of([2, 7, 3], [[], [0], [0, 1]], seed)
        sharp = rng.dirichlet(np.full(7, 0.01), 2)
        network = make_network(*network[:3], [network.tables[0], sharp, network.tables[2]])
        assert same(parse_bif(bif_text(network)), network)


def test_states_that_are_not_text_are_written_as_text():
    network = network_of([2, 2], [[], [0]], 0, states=[[0, 1], [True, False]])
    again = parse_bif(bif_text(network))
    assert again.states == (("0", "1"), ("True", "False"))
    assert same(again, network._replace(states=again.states))


AWKWARD = ["very bad", "a,b", "(0, 5]", "{x}", "a;b", "a|b", "http://x", "/*", "", " padded "]


@pytest.mark.parametrize("name", AWKWARD)
def test_a_name_that_needs_quotes_is_refused_unless_they_are_asked_for(name, tmp_path):
    as_state = network_of([2, 2], [[], [0]], 0, states=[[name, "good"], ["x", "y"]])
    as_variable = network_of([2, 2], [[], [0]], 0, names=[name, "v1"])
    for network, kind in ((as_state, "state"), (as_variable, "variable")):
        with pytest.raises(ValueError, match=f"{kind} .* cannot be written as BIF without quotes") as refused:
            write_bif(network, tmp_path / "file.bif")
        assert repr(name) in str(refused.value)
        assert not list(tmp_path.iterdir())
        assert same(parse_bif(bif_text(network, quote=True)), network)


@pytest.mark.parametrize("name", ['say "no"', "two\nlines", "\x00", "\ud800"])
def test_a_name_that_no_quotes_can_hold_is_refused(name):
    network = network_of([2], [[]], 0, states=[[name, "good"]])
    with pytest.raises(ValueError, match="of variable 'v0' cannot be written as BIF: a quote or control character"):
        bif_text(network, quote=True)


def test_names_that_become_the_same_text_are_refused():
    network = network_of([2], [[]], 0, states=[[1, "1"]])
    with pytest.raises(ValueError, match="variable 'v0' cannot be written as BIF: two of its states read '1'"):
        bif_text(network)


# --- damage


def test_a_file_cut_anywhere_is_one_sentence(small):
    text = bif_text(small).rstrip()
    parse_bif(text)
    for end in range(len(text)):
        with pytest.raises(ValueError, match=r"^cut\.bif, line \d+: [^\n]+$"):
            parse_bif(text[:end], "cut.bif")


def test_a_compressed_file_cut_anywhere_is_one_sentence(small, tmp_path):
    path = tmp_path / "cut.bif.gz"
    write_bif(small, path)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"cut\.bif\.gz[^\n]*$"):
            read_bif(path)


def refusal(text):
    try:
        parse_bif(text, "damaged.bif")
    except ValueError as refused:
        return str(refused)
    return None


def test_damage_anywhere_is_one_sentence_or_another_network(small):
    """Signs of the format put in, left out and exchanged at random: never another exception."""
    rng = random.Random(0)
    signs = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        "|",
        '"',
        "//",
        "/*",
        "\n",
        "\0",
        "9",
        "nan",
        "table",
        "property x;",
    ]
    text = bif_text(small)
    n_refused = 0
    for _ in range(3_000):
        damaged = list(text)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(damaged))
            damaged[place] = rng.choice(["", rng.choice(signs), damaged[place] + rng.choice(signs)])
        sentence = refusal("".join(damaged))
        n_refused += bool(sentence)
        assert sentence is None or (sentence.startswith("damaged.bif") and "\n" not in sentence)
    assert n_refused > 2_000


def test_damage_to_the_packing_or_the_text_is_one_sentence(small, tmp_path):
    path = tmp_path / "damaged.bif.gz"
    write_bif(small, path)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(20) + whole[middle + 20 :])
    with pytest.raises(ValueError, match=r"damaged\.bif\.gz is cut or damaged: it cannot be unpacked"):
        read_bif(path)
    path.write_bytes(b"variable \xff {")
    with pytest.raises(ValueError, match=r"damaged\.bif\.gz is not a BIF file: byte 9 is not UTF-8 text"):
        read_bif(path)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["/* " * 10**6, '"' * (10**6 + 1), "network " * 10**5, "property " * 10**5, " " * 10**6]
)
def test_a_long_hostile_text_does_not_hang(text):
    with pytest.raises(ValueError, match="line 1: "):
        parse_bif(text)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("(yes) 0.1, 0.2, 0.7;", "", "line 5: variable 'wet': row 'yes' is missing"),
        ("(yes)", "(no)", "line 5: variable 'wet': row 'no' is given twice"),
        ("(yes)", "(maybe)", "variable 'wet': row 'maybe' does not name a state of each of its parents"),
        ("(yes)", "(yes, no)", "variable 'wet': row 'yes, no' does not name a state"),
        ("(yes)", "default 0, 0, 1; default", "variable 'wet': its default is given twice"),
        ("0.1, 0.2, 0.7", "0.1, 0.9", "variable 'wet': row 'yes' holds 2 probabilities, and 3 are needed"),
        (
            "0.1, 0.2, 0.7",
            "0.1, 0.2, 0.8",
            r"variable 'wet': row 'yes' holds probabilities that sum to 1\.1, not to one",
        ),
        ("0.1, 0.2, 0.7", "-0.1, 0.4, 0.7", "variable 'wet': row 'yes' holds something that is not a probability"),
        ("0.1, 0.2, 0.7", "0.1, 0.2, nan", "variable 'wet': row 'yes' holds something that is not a probability"),
        ("0.1, 0.2, 0.7", "0.1, 0.2, x", "variable 'wet': row 'yes' holds something that is not a probability"),
        ("table 0.8, 0.2;", "", "line 4: variable 'rain': its probabilities are missing"),
        ("table 0.8, 0.2;", "table 0.8;", "variable 'rain': its table holds 1 probabilities, and 2 are needed"),
        ("[3]", "[4]", "line 3: variable 'wet' declares 4 states and lists 3"),
        ("dry, damp, soaked", "dry, damp, dry", "variable 'wet' lists its state 'dry' twice"),
        ("discrete [2]", "continuous [2]", "line 2: variable 'rain': 'type discrete"),
        ("probability ( wet | rain )", "probability ( wet | snow )", "variable 'wet': no variable 'snow' is declared"),
        ("probability ( wet | rain )", "probability ( wet | wet )", "variable 'wet': 'wet' stands twice"),
        ("probability ( wet | rain )", "probability ( rain )", "the probabilities of variable 'rain' are given twice"),
        ("variable wet", "variable rain", "line 3: variable 'rain' is declared twice"),
        ("probability ( rain ) { table 0.8, 0.2; }", "", "the probabilities of variable 'rain' are missing"),
        ("variable wet", "variabel wet", "line 3: a block .* is needed, 'variabel' is there"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_variable(old, new, sentence):
    assert old in WET
    with pytest.raises(ValueError, match=sentence):
        parse_bif(WET.replace(old, new))


def test_a_cycle_is_named_with_the_file():
    text = (
        "variable a { type discrete [1] { x }; } variable b { type discrete [1] { x }; }"
        "probability ( a | b ) { (x) 1; } probability ( b | a ) { (x) 1; }"
    )
    with pytest.raises(ValueError, match=r"^round\.bif: the arcs form a cycle: "):
        parse_bif(text, "round.bif")


def declared(n, n_states):
    states = ", ".join(f"s{k}" for k in range(n_states))
    return "".join(f"variable v{v} {{ type discrete [{n_states}] {{ {states} }}; }}\n" for v in range(n))


def test_tables_beyond_ten_million_cells_are_refused_before_they_are_made():
    priors = "".join(f"probability ( v{v} ) {{ default {', '.join(['0.1'] * 10)}; }}\n" for v in range(1, 8))
    parents = ", ".join(f"v{v}" for v in range(1, 8))
    text = declared(8, 10) + priors + f"probability ( v0 | {parents} ) {{ default {', '.join(['0.1'] * 10)}; }}"
    with pytest.raises(ValueError, match="variable 'v0' brings the tables to more than 10000000 cells"):
        parse_bif(text)


def test_too_many_variables_or_parents_are_refused(monkeypatch):
    parents = ", ".join(f"v{v}" for v in range(1, 40))
    priors = "".join(f"probability ( v{v} ) {{ table 1; }}\n" for v in range(1, 40))
    text = declared(40, 1) + priors + f"probability ( v0 | {parents} ) {{ table 1; }}"
    with pytest.raises(ValueError, match="variable 'v0' has 39 parents, at most 30 are read"):
        parse_bif(text)
    monkeypatch.setattr(bif, "MOST_VARIABLES", 39)
    with pytest.raises(ValueError, match="40 variables are declared, and at most 39 can be read"):
        parse_bif(text)


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bif, "MOST_BYTES", 2**20)
    path = tmp_path / "bomb.bif.gz"
    path.write_bytes(gzip.compress(b" " * 2**22))
    with pytest.raises(ValueError, match=r"bomb\.bif\.gz holds more than 1 MiB"):
        read_bif(path)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_bif(tmp_path / "none.bif")
