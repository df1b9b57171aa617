"""News with several topics each, a task for every topic: Reuters-21578 and samples of RCV1, read from ``KINFOLK_DATA``.

Both are the text sets of Zhang, Ghahramani and Yang, "Learning Multiple Related Tasks using Latent Independent
Component Analysis", section 4.
"""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.datasets.real import data_file

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.utils import Bunch

NINE_TOPICS = ("grain", "corn", "wheat", "money-fx", "dlr", "interest", "crude", "nat-gas", "ship")
# Words of one or two letters are mostly initials, units and what is left of "u.s.".
WORD = re.compile(r"[a-z]{3,}")
FEWEST_DOCUMENTS = 3


def load_reuters(*, topics: Sequence[str] = NINE_TOPICS, min_documents: int = FEWEST_DOCUMENTS) -> Bunch:
    """Load the documents of Reuters-21578 that have one of some topics, by the ModApte split.

    A document is its title and body, in lower case. Words are runs of at least three letters, less scikit-learn's
    English stop words, cut down to stems by the Snowball stemmer for English; of these stay those that occur in at
    least three documents of the training part (the paper removes "words that occur less than three times"; counting
    documents comes nearer to its number of features than counting occurrences: with the nine topics 3,533 against
    4,115, where the paper has 3,358). A stem that occurs t times in a document weighs (1 + log t) log(n / d), with d
    of the n training documents containing it, and each row is divided by its length. No label is used for that.

    Parameters
    ----------
    topics : sequence of str
        By default grain, corn, wheat; money-fx, dlr, interest; crude, nat-gas, ship. The paper names none of its nine:
        it chose them because they "are often correlated by previous studies" and cites Koller and Sahami (1997), who
        arrange topics in two levels. These are three topics, each with two that often come along with it: grain with
        wheat, grain with corn, interest with money-fx and dlr with money-fx are, in this order, the four pairs of
        topics that occur together most often.
    min_documents : int, default=3
        Training documents in which a stem must occur to become a feature.

    Returns
    -------
    Bunch
        ``data`` (csr_matrix of float64), ``target`` (rows × topics, 1.0 where the document has the topic and else
        0.0), ``is_train``, ``feature_names``, ``target_names``, ``document`` (its number in the collection), ``name``.

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.
    ImportError
        Where snowballstemmer is not installed.
    """
    from sklearn.utils import Bunch

    names = _known_topics(topics)
    if isinstance(min_documents, bool) or not isinstance(min_documents, int) or min_documents < 1:
        raise ValueError(f"min_documents is {min_documents!r}, but must be a whole number from 1")
    documents = [document for document in _reuters() if set(names) & set(document["topics"])]
    is_train = np.array([document["modapte"] == "train" for document in documents])
    counts = count_stems([f"{document['title']}\n{document['body']}" for document in documents])
    data, feature_names = weigh_stems(counts, is_train, min_documents)
    return Bunch(
        data=data,
        target=np.array([[float(name in document["topics"]) for name in names] for document in documents]),
        is_train=is_train,
        feature_names=feature_names,
        target_names=names,
        document=np.array([document["newid"] for document in documents]),
        name="reuters",
    )


def load_rcv1() -> Bunch:
    """Load five samples of RCV1-v2 as one set: 27,613 documents, 47,236 features, 101 topics.

    Documents with the same vector are one: the samples overlap. It is in the training part where any of its copies is.
    Copies may differ in their topics (96 of 2,387 do); those of the first in a training part stay, or else of the
    first.

    Returns
    -------
    Bunch
        ``data`` (csr_matrix of float64, rows of length 1), ``target`` (csr_matrix of float64, rows × topics, ones),
        ``is_train``, ``target_names`` (codes of topics), ``document``, ``name``. The features have no names.

    Raises
    ------
    FileNotFoundError
        Where ``KINFOLK_DATA`` is not set or does not hold the set.
    """
    from scipy.sparse import csr_matrix
    from sklearn.utils import Bunch

    with np.load(data_file("rcv1_subsets", "rcv1_subsets.npz")) as parts:
        data = csr_matrix(
            (parts["X_data"].astype(np.float64), parts["X_indices"].astype(np.int32), parts["X_indptr"]),
            shape=tuple(parts["X_shape"]),
        )
        topics = parts["Y_indices"].astype(np.int32)
        target = csr_matrix((np.ones(len(topics)), topics, parts["Y_indptr"]), shape=tuple(parts["Y_shape"]))
        kept, is_train = drop_copies(parts["doc_id"], parts["is_train"])
        document = parts["doc_id"][kept]
        names = tuple(parts["label_names"].tolist())
    return Bunch(
        data=data[kept], target=target[kept], is_train=is_train, target_names=names, document=document, name="rcv1"
    )


def drop_copies(
    document: NDArray[np.integer[Any]], is_train: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Give the places of one copy of each document, a training copy where there is one, and whether it is one.

    Examples
    --------
    >>> kept, is_train = drop_copies(np.array([7, 5, 7, 5, 9]), np.array([False, True, True, True, False]))
    >>> kept.tolist(), is_train.tolist()
    ([1, 2, 4], [True, True, False])
    """
    order = np.argsort(~is_train, kind="stable")
    _, first = np.unique(document[order], return_index=True)
    kept = np.sort(order[first])
    return kept, is_train[kept]


def count_stems(texts: Sequence[str]) -> list[Counter[str]]:
    """Count the stems of each text, without stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = [Counter(word for word in WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS) for text in texts]
    stem_of = _stems(sorted(set().union(*words)))
    counts = []
    for of_text in words:
        stems: Counter[str] = Counter()
        for word, times in of_text.items():
            stems[stem_of[word]] += times
        counts.append(stems)
    return counts


def weigh_stems(
    counts: Sequence[Mapping[str, int]], is_train: NDArray[np.bool_], min_documents: int
) -> tuple[csr_matrix, tuple[str, ...]]:
    """Weigh stems by their frequency in a text and their rarity in the training part; rows of length 1.

    Examples
    --------
    >>> data, names = weigh_stems([{"oil": 1, "well": 1}, {"oil": 2}, {"well": 5}], np.ones(3, dtype=bool), 2)
    >>> names, data.toarray().round(3).tolist()
    (('oil', 'well'), [[0.707, 0.707], [1.0, 0.0], [0.0, 1.0]])
    """
    from scipy.sparse import csr_matrix, diags_array

    in_documents = Counter(stem for of_text, train in zip(counts, is_train, strict=True) if train for stem in of_text)
    names = tuple(sorted(stem for stem, number in in_documents.items() if number >= min_documents))
    place = {stem: j for j, stem in enumerate(names)}
    rarity = np.log(int(is_train.sum()) / np.array([in_documents[stem] for stem in names], dtype=np.float64))
    rows, columns, weights = [], [], []
    for row, of_text in enumerate(counts):
        for stem, times in of_text.items():
            if stem in place:
                rows.append(row)
                columns.append(place[stem])
                weights.append((1 + np.log(times)) * rarity[place[stem]])
    weighed = csr_matrix((weights, (rows, columns)), shape=(len(counts), len(names)))
    length = np.sqrt(np.asarray(weighed.multiply(weighed).sum(axis=1)).ravel())
    # A text without a single feature stays a row of zeros.
    scaled = csr_matrix(diags_array(1 / np.where(length > 0, length, 1.0)) @ weighed)
    scaled.sort_indices()
    return scaled, names


def _reuters() -> Iterator[dict[str, Any]]:
    """The documents of both parts of the ModApte split, in the collection's order."""
    with lzma.open(data_file("reuters21578", "reuters21578.jsonl.xz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            if document["modapte"] in ("train", "test"):
                yield document


def _known_topics(topics: Sequence[str]) -> tuple[str, ...]:
    known = json.loads(data_file("reuters21578", "modapte_topics.json").read_text(encoding="utf-8"))["topics90"]
    names = tuple(topics)
    if isinstance(topics, str) or not names:
        raise ValueError(f"topics is {topics!r}, but must be a list of at least one topic")
    for name in names:
        if name not in known:
            raise ValueError(f"there is no topic {name!r} in both parts of the split: there are {', '.join(known)}")
        if names.count(name) > 1:
            raise ValueError(f"topics names {name!r} twice, but each topic is one task")
    return names


def _stems(words: Sequence[str]) -> dict[str, str]:
    try:
        stemmer = import_module("snowballstemmer").stemmer("english")
    except ImportError:
        raise ImportError("snowballstemmer is not installed: 'pip install kinfolk[text]' brings it") from None
    return dict(zip(words, stemmer.stemWords(list(words)), strict=True))
