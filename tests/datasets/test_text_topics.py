"""Reuters-21578 and RCV1 load as their READMEs say; skipped by name where they are not, small made-up ones never."""

import json
import lzma
import sys
from collections import Counter
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from kinfolk.datasets import load_rcv1, load_reuters
from kinfolk.datasets.real import data_file
from kinfolk.datasets.text_topics import count_stems, weigh_stems


def loaded(load):
    if load is load_reuters:
        pytest.importorskip("snowballstemmer", reason="Reuters-21578 is stemmed, and snowballstemmer is not installed")
    try:
        return load()
    except FileNotFoundError as absent:
        pytest.skip(f"the real data set of {load.__name__} is not here: {absent}")


@pytest.fixture(scope="module")
def reuters():
    return loaded(load_reuters)


@pytest.fixture(scope="module")
def rcv1():
    return loaded(load_rcv1)


# Training and test documents of the ModApte split, as the set's README counts them.
@pytest.mark.parametrize(("topic", "train", "test"), [("money-fx", 538, 179), ("grain", 433, 149), ("crude", 389, 189)])
def test_a_topic_has_the_documents_that_the_readme_counts(reuters, topic, train, test):
    has = reuters.target[:, reuters.target_names.index(topic)] == 1
    assert (has[reuters.is_train].sum(), has[~reuters.is_train].sum()) == (train, test)


def test_there_are_about_as_many_features_as_the_paper_has(reuters):
    assert reuters.data.shape[1] == len(reuters.feature_names) == pytest.approx(3_358, rel=0.06)


def test_every_document_has_one_of_the_nine_topics_and_many_have_several(reuters):
    per_document = reuters.target.sum(axis=1)
    assert reuters.target.shape[1] == 9
    assert per_document.min() == 1
    assert (per_document > 1).mean() > 0.3


def test_rows_have_length_one(reuters, rcv1):
    for data, near in ((reuters.data, 1e-12), (rcv1.data, 3e-6)):
        assert np.abs(data.multiply(data).sum(axis=1) - 1).max() < 2 * near


def test_the_nine_topics_hold_the_four_pairs_that_occur_together_most_often(reuters):
    with lzma.open(data_file("reuters21578", "reuters21578.jsonl.xz"), "rt", encoding="utf-8") as lines:
        train = [json.loads(line) for line in lines if '"modapte": "train"' in line or '"modapte":"train"' in line]
    pairs = Counter(pair for document in train for pair in combinations(sorted(set(document["topics"])), 2))
    most = [("grain", "wheat"), ("corn", "grain"), ("interest", "money-fx"), ("dlr", "money-fx")]
    assert [pair for pair, _ in pairs.most_common(4)] == most
    assert {topic for pair in most for topic in pair} < set(reuters.target_names)


def test_every_document_of_rcv1_is_there_once(rcv1):
    assert rcv1.data.shape == (27_613, 47_236)
    assert rcv1.target.shape == (27_613, 101)
    assert len(np.unique(rcv1.document)) == 27_613
    assert len(rcv1.target_names) == 101


@pytest.mark.parametrize(("child", "parent"), [("C1511", "C151"), ("C151", "C15"), ("C15", "CCAT"), ("E121", "ECAT")])
def test_a_topic_of_rcv1_never_comes_without_the_topic_above_it(rcv1, child, parent):
    below, above = (rcv1.target[:, [rcv1.target_names.index(name)]].toarray().ravel() for name in (child, parent))
    assert below.sum() > 0
    assert (below <= above).all()


@pytest.fixture
def stemmer(monkeypatch):
    cut = SimpleNamespace(stemWords=lambda words: [word.removesuffix("s") for word in words])
    monkeypatch.setitem(sys.modules, "snowballstemmer", SimpleNamespace(stemmer=lambda language: cut))


DOCUMENTS = [
    {"newid": 1, "modapte": "train", "topics": ["crude", "ship"], "title": "Oil tankers", "body": "the oil tanker"},
    {"newid": 2, "modapte": "train", "topics": ["crude"], "title": "Oil", "body": "barrels of oil"},
    {"newid": 3, "modapte": "unused", "topics": ["crude"], "title": "barrels", "body": "barrels"},
    {"newid": 4, "modapte": "train", "topics": ["earn"], "title": "profits", "body": ""},
    {"newid": 5, "modapte": "train", "topics": ["ship"], "title": "tankers", "body": "barrel"},
    {"newid": 6, "modapte": "test", "topics": ["ship"], "title": "ferries", "body": "ferry oil"},
]


@pytest.fixture
def few_documents(monkeypatch, tmp_path, stemmer):
    folder = tmp_path / "reuters21578"
    folder.mkdir()
    with lzma.open(folder / "reuters21578.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(document) + "\n" for document in DOCUMENTS)
    (folder / "modapte_topics.json").write_text(json.dumps({"topics90": ["crude", "earn", "ship"]}))
    monkeypatch.setenv("KINFOLK_DATA", str(tmp_path))


def test_documents_of_the_split_with_a_topic_asked_for_become_rows(few_documents):
    reuters = load_reuters(topics=["crude", "ship"], min_documents=2)
    assert reuters.document.tolist() == [1, 2, 5, 6]
    assert reuters.is_train.tolist() == [True, True, True, False]
    assert reuters.target.tolist() == [[1, 1], [1, 0], [0, 1], [0, 1]]
    assert reuters.target_names == ("crude", "ship")


def test_stems_are_weighed_by_frequency_and_rarity_among_training_documents_of_the_topics(few_documents):
    reuters = load_reuters(topics=["crude", "ship"], min_documents=2)
    # Three training documents; oil, tanker and barrel are in two of them each, so all are equally rare; "the" and "of"
    # are stop words, "ferrie" and "ferry" are in the test part alone.
    assert reuters.feature_names == ("barrel", "oil", "tanker")
    twice = 1 + np.log(2)
    once = np.array([[0, twice, twice], [1, twice, 0], [1, 0, 1], [0, 1, 0]])
    expected = once / np.linalg.norm(once, axis=1, keepdims=True)
    np.testing.assert_allclose(reuters.data.toarray(), expected)


def test_a_rarer_stem_weighs_more_and_a_text_without_features_stays_a_row_of_zeros():
    counts = [{"oil": 1, "gas": 1}, {"oil": 1}, {"gas": 1, "well": 1}, {"oil": 1}, {"well": 1}]
    data, names = weigh_stems(counts, np.array([True, True, True, True, False]), 2)
    assert names == ("gas", "oil")
    first = np.log([4 / 2, 4 / 3])
    np.testing.assert_allclose(data.toarray()[0], first / np.linalg.norm(first))
    assert data.toarray()[4].tolist() == [0, 0]


def test_words_are_cut_down_to_the_stems_that_snowball_gives():
    pytest.importorskip("snowballstemmer", reason="snowballstemmer is not installed")
    assert count_stems(["The BANKING banks; banked 99 of us"]) == [Counter({"bank": 3})]


def test_a_missing_stemmer_is_asked_for(few_documents, monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(ImportError, match=r"^snowballstemmer is not installed: 'pip install kinfolk\[text\]'"):
        load_reuters(topics=["crude"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topics": ["cocoa"]}, "there is no topic 'cocoa' in both parts of the split: there are crude, earn, ship"),
        ({"topics": ["ship", "ship"]}, "topics names 'ship' twice, but each topic is one task"),
        ({"topics": "ship"}, "topics is 'ship', but must be a list of at least one topic"),
        ({"topics": []}, "must be a list of at least one topic"),
        ({"topics": ["ship"], "min_documents": 0}, "min_documents is 0, but must be a whole number from 1"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_a_sentence(few_documents, given, said):
    with pytest.raises(ValueError, match=said):
        load_reuters(**given)


def test_of_copies_a_training_one_stays_with_its_topics(monkeypatch, tmp_path):
    data = csr_matrix(np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]))
    topics = csr_matrix(np.array([[1, 0], [0, 1], [0, 1], [1, 1]]))
    (tmp_path / "rcv1_subsets").mkdir()
    np.savez(
        tmp_path / "rcv1_subsets" / "rcv1_subsets.npz",
        X_data=data.data.astype(np.float32),
        X_indices=data.indices.astype(np.uint16),
        X_indptr=data.indptr,
        X_shape=data.shape,
        Y_indices=topics.indices.astype(np.uint8),
        Y_indptr=topics.indptr,
        Y_shape=topics.shape,
        label_names=np.array(["C11", "E11"]),
        is_train=np.array([False, True, True, False]),
        doc_id=np.array([4, 9, 4, 2]),
    )
    monkeypatch.setenv("KINFOLK_DATA", str(tmp_path))
    rcv1 = load_rcv1()
    assert rcv1.document.tolist() == [9, 4, 2]
    assert rcv1.is_train.tolist() == [True, True, False]
    assert rcv1.target.toarray().tolist() == [[0, 1], [0, 1], [1, 1]]
    assert rcv1.data.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert rcv1.target_names == ("C11", "E11")


@pytest.mark.parametrize("load", [load_reuters, load_rcv1])
def test_a_set_that_is_not_there_is_asked_for_by_name(monkeypatch, load):
    monkeypatch.delenv("KINFOLK_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="KINFOLK_DATA is not set: it names the folder that holds r"):
        load()
