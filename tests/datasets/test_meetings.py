"""Made-up meeting requests against the thesis's appendix B and table 4.1, and facts they must show."""

import hashlib
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB

from kinfolk.datasets.meeting_rules import GROUPS, HABITS
from kinfolk.datasets.meetings import MEETING_FEATURES, MEETING_MEANINGS, TEAM, make_meetings

# Roy (2006), appendix B, as printed.
APPENDIX_B = """\
start time: morning, afternoon, early, mid, late
duration: 15, 30, 60, XXX
message importance: other, unimportant, possibly important, important, very important, critical
topic importance: other, unimportant, possibly important, important, very important, critical
invitee job: other, officer, planner, student, faculty, administrator, funding
invitee relation: other, subordinate, peer, supervisor, family
invitee recent: 0, 1, 3, 7, XXX
invitee soon: 0, 1, 3, 7, XXX
busy fday: light-free, light-busy, busy-free, busy-busy, booked-free, booked-busy
busy hday: light-free, light-busy, busy-free, busy-busy, booked-free, booked-busy
free slot time: 0, 15, 30, 60, 90, 135, XXX
conflict: no, yes
conflict importance: other, unimportant, possibly important, important, very important, critical
conflict frequency: other, one time, occasionally, regularly
location: local-none, away-none, local-local, away-local, local-away, away-away"""

# Roy (2006), table 4.1: group, user ids, institutions (one for all, or one each).
TABLE_4_1 = [
    (1, (1, 2, 3, 5, 6, 8), ("Military",)),
    (2, (4, 7), ("Military",)),
    (3, (9, 11), ("MIT", "Michigan")),
    (4, (10, 14, 15, 21), ("SRI",)),
    (5, (12, 17, 20), ("MIT", "MIT", "Oregon State")),
    (6, (13,), ("SRI",)),
    (7, (16,), ("Berkeley",)),
    (8, (18,), ("SRI",)),
    (9, (19,), ("CMU",)),
]

N_VALUES = [len(values) for values in MEETING_FEATURES.values()]


def codes_of(data):
    """Codes of a polars frame by the order of values in MEETING_FEATURES."""
    return np.stack([column.to_physical().to_numpy() for column in data.get_columns()], axis=1)


@pytest.fixture(scope="module")
def meetings():
    return make_meetings(random_state=0)


def test_features_and_values_are_those_of_appendix_b():
    printed = [line.split(": ") for line in APPENDIX_B.splitlines()]
    assert list(MEETING_FEATURES) == [name.replace(" ", "_") for name, _ in printed]
    for (_, values), ours in zip(printed, MEETING_FEATURES.values(), strict=True):
        assert [
            mine if theirs == "XXX" else theirs for mine, theirs in zip(ours, values.split(", "), strict=True)
        ] == list(ours)
        assert len(set(ours)) == len(ours)


def test_every_feature_has_a_meaning():
    assert list(MEETING_MEANINGS) == list(MEETING_FEATURES)
    assert all(MEETING_MEANINGS.values())


def test_team_is_table_4_1():
    rows = sorted(
        (user, institutions[i % len(institutions)], group)
        for group, users, institutions in TABLE_4_1
        for i, user in enumerate(users)
    )
    assert [(person.id, person.institution, person.group) for person in TEAM] == rows
    assert len({person.name for person in TEAM}) == 21


def test_rules_and_mixes_speak_of_values_that_exist():
    for rule in [rule for group in GROUPS.values() for rule in group.rules] + list(HABITS):
        for feature, values in rule.conditions:
            assert set(values) <= set(MEETING_FEATURES[feature]), rule
    for group in GROUPS.values():
        assert set(group.mix.starts) <= set(MEETING_FEATURES["start_time"])
        assert set(group.mix.jobs) <= set(group.mix.relations) <= set(MEETING_FEATURES["invitee_job"])
        for relations in group.mix.relations.values():
            assert set(relations) <= set(MEETING_FEATURES["invitee_relation"])


def test_the_last_rule_of_a_group_decides_whatever_is_left():
    for group in GROUPS.values():
        assert [bool(rule.conditions) for rule in group.rules] == [True] * (len(group.rules) - 1) + [False]


@pytest.mark.parametrize("seed", range(5))
def test_by_default_21_people_get_3966_requests_with_100_to_400_each(seed):
    bunch = make_meetings(random_state=seed)
    people, sizes = np.unique(bunch.task, return_counts=True)
    assert people.tolist() == list(range(1, 22))
    assert bunch.data.shape == (3966, 15)
    assert bunch.target.shape == bunch.task.shape == (3966,)
    assert sizes.min() >= 100
    assert sizes.max() <= 400
    assert len(set(sizes)) > 10


def test_one_number_of_requests_holds_for_all():
    bunch = make_meetings(4, 30, random_state=0)
    assert np.unique(bunch.task, return_counts=True)[1].tolist() == [30] * 4
    assert np.unique(make_meetings(4, (30, 30), random_state=0).task, return_counts=True)[1].tolist() == [30] * 4


def test_every_value_of_every_feature_occurs_and_frames_know_them_all(meetings):
    for name, values in MEETING_FEATURES.items():
        assert meetings.data.schema[name] == pl.Enum(values)
        assert set(meetings.data[name].unique()) == set(values)


def test_polars_pandas_and_numpy_hold_the_same_requests(meetings):
    pandas = make_meetings(random_state=0, frame="pandas").data
    array = make_meetings(random_state=0, frame=None).data
    assert list(pandas.columns) == meetings.data.columns == meetings.feature_names
    assert all(tuple(pandas[name].cat.categories) == values for name, values in MEETING_FEATURES.items())
    assert pandas.to_numpy(dtype=object).tolist() == array.tolist() == [list(row) for row in meetings.data.rows()]


def test_a_seed_gives_the_same_data_and_another_seed_other_data(meetings):
    again = make_meetings(random_state=np.random.RandomState(0))
    assert meetings.data.equals(again.data)
    assert meetings.target.tolist() == again.target.tolist()
    assert meetings.rules == again.rules
    assert not meetings.data.equals(make_meetings(random_state=1).data)


def test_no_two_people_of_a_group_get_the_same_requests():
    bunch = make_meetings(22, 50, quirk=0.0, random_state=0)
    first, second, on_the_next_lap = (bunch.data.filter(bunch.task == person) for person in (1, 2, 22))
    assert not first.equals(second)
    assert not first.equals(on_the_next_lap)
    assert not first.equals(make_meetings(1, 50, quirk=0.0, random_state=1).data)


def test_the_hash_seed_does_not_matter(meetings):
    script = (
        "import hashlib; from kinfolk.datasets.meetings import make_meetings; "
        "b = make_meetings(random_state=0); "
        "print(hashlib.sha256(repr((b.data.rows(), b.target.tolist())).encode()).hexdigest())"
    )
    here = hashlib.sha256(repr((meetings.data.rows(), meetings.target.tolist())).encode()).hexdigest()
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == here


def test_noise_and_missing_answers_leave_the_requests_as_they_are(meetings):
    other = make_meetings(random_state=0, noise=0.3, unlabelled=0.5)
    assert meetings.data.equals(other.data)
    assert meetings.rules == other.rules


@pytest.mark.parametrize("seed", range(20))
def test_everyone_accepts_between_a_quarter_and_four_fifths(seed):
    bunch = make_meetings(random_state=seed, frame=None)
    rates = [(bunch.target[bunch.task == person] == "accept").mean() for person in range(1, 22)]
    assert min(rates) >= 0.25
    assert max(rates) <= 0.8
    assert set(bunch.target) == {"accept", "reject"}


def test_without_noise_the_first_rule_that_applies_decides():
    bunch = make_meetings(random_state=3, noise=0.0)
    for request, person, answer in zip(bunch.data.rows(named=True), bunch.task, bunch.target, strict=True):
        decisions = [
            rule.decision
            for rule in bunch.rules[person]
            if all(request[feature] in values for feature, values in rule.conditions)
        ]
        assert answer == decisions[0]


def test_noise_is_the_share_of_answers_against_the_rules():
    by_rule, noisy = (make_meetings(random_state=0, noise=noise).target for noise in (0.0, 0.2))
    # Four standard errors of a binomial share of 3966.
    assert np.mean(by_rule != noisy) == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 3966))


def test_people_without_quirks_follow_their_group_and_others_alter_at_most_two_rules():
    plain = make_meetings(random_state=0, quirk=0.0)
    assert all(plain.rules[person.id] == GROUPS[person.group].rules for person in plain.people)

    quirky = make_meetings(200, 1, random_state=0)
    altered = 0
    for person in quirky.people:
        rules, of_group = quirky.rules[person.id], GROUPS[person.group].rules
        assert rules[-1] == of_group[-1]
        assert len([rule for rule in rules if rule not in of_group]) <= 2
        assert len([rule for rule in of_group if rule not in rules]) == 0
        # The rules that were not moved to the front keep their order.
        moved = {rule for rule in rules[:2] if rule in of_group}
        kept = [rule for rule in of_group if rule not in moved]
        assert [rule for rule in rules if rule in kept] == kept
        altered += rules != of_group
    assert 100 < altered < 200


def test_features_of_a_request_do_not_contradict_each_other(meetings):
    data = meetings.data
    clash = data["conflict"] == "yes"
    free = data.filter(~clash)
    assert set(free["conflict_importance"]) == {"other"}
    assert set(free["conflict_frequency"]) == {"other"}
    taken = data.filter(clash)
    assert "other" not in set(taken["conflict_frequency"])
    assert not {"local-none", "away-none"} & set(taken["location"])
    assert set(taken["free_slot_time"]) <= {"0", "15", "30"}
    alone = data.filter(data["location"].is_in(["local-none", "away-none"]))
    assert not {"0", "15"} & set(alone["free_slot_time"])


def test_features_of_a_request_hang_together_as_a_calendar_does():
    # One person: differences between people would show as dependence too.
    codes = dict(zip(MEETING_FEATURES, codes_of(make_meetings(1, 4000, random_state=0).data).T, strict=True))
    fullness = codes["busy_hday"] // 2

    conflicts = [codes["conflict"][fullness == level].mean() for level in range(3)]
    assert all(later > earlier + 0.1 for earlier, later in pairwise(conflicts))
    gaps = [codes["free_slot_time"][fullness == level].mean() for level in range(3)]
    assert all(later < earlier - 0.5 for earlier, later in pairwise(gaps))

    known = (codes["topic_importance"] > 0) & (codes["message_importance"] > 0)
    assert np.corrcoef(codes["topic_importance"][known], codes["message_importance"][known])[0, 1] > 0.5
    by_supervisor = codes["invitee_relation"] == MEETING_FEATURES["invitee_relation"].index("supervisor")
    topic = codes["topic_importance"]
    assert topic[known & by_supervisor].mean() > topic[known & ~by_supervisor].mean() + 0.3
    message = codes["message_importance"]
    assert np.corrcoef(message[known], codes["invitee_soon"][known])[0, 1] < -0.1


def test_officers_ask_the_military_students_ask_professors_and_funders_ask_sri(meetings):
    institution = {person.id: person.institution for person in meetings.people}
    asked = np.array([institution[person] for person in meetings.task])
    job = meetings.data["invitee_job"].to_numpy()
    assert set(asked[job == "officer"]) == {"Military"}
    assert "Military" not in set(asked[job == "student"])
    professors = ~np.isin(asked, ["Military", "SRI"])
    assert np.mean(job[professors] == "student") > 0.25 > np.mean(job[asked == "SRI"] == "student")
    assert np.mean(job[asked == "SRI"] == "funding") > np.mean(job[asked == "Military"] == "funding")


def auc_by_sharing(bunch, n_rows, seed):
    """Mean area under the ROC curve, trained on a person's own rows, on those of true kin, on everybody's."""
    rng = np.random.default_rng(seed)
    requests, accepted = codes_of(bunch.data), bunch.target == "accept"
    shuffled = {person: rng.permutation(np.flatnonzero(bunch.task == person)) for person in bunch.group}
    areas = []
    for person, group in bunch.group.items():
        kin = [other for other, theirs in bunch.group.items() if theirs == group]
        test = shuffled[person][64:]
        for teachers in ([person], kin, list(bunch.group)):
            train = np.concatenate([shuffled[teacher][:n_rows] for teacher in teachers])
            model = CategoricalNB(min_categories=N_VALUES).fit(requests[train], accepted[train])
            # With one label in training there is nothing to rank by.
            scores = model.predict_proba(requests[test])[:, -1]
            areas.append(roc_auc_score(accepted[test], scores))
    return np.reshape(areas, (-1, 3)).mean(axis=0)


def test_with_few_rows_learning_from_kin_beats_learning_alone_and_from_everybody():
    for n_rows in (4, 16):
        alone, kin, everybody = np.mean(
            [auc_by_sharing(make_meetings(random_state=s), n_rows, s) for s in range(3)], axis=0
        )
        assert kin > alone + 0.03
        assert kin > everybody + 0.03


def test_with_64_rows_learning_alone_beats_pooling_and_is_neither_hopeless_nor_trivial(meetings):
    alone, _, everybody = auc_by_sharing(meetings, 64, 0)
    assert 0.75 < alone < 0.92
    assert alone > everybody + 0.08


def log_marginal(bunch, block_of):
    """Log marginal of features given labels in closed form: a uniform Dirichlet per block, label, feature."""
    requests, accepted = codes_of(bunch.data), bunch.target == "accept"
    block = np.array([block_of[person] for person in bunch.task])
    total = 0.0
    for each in np.unique(block):
        for label in (False, True):
            rows = requests[(block == each) & (accepted == label)]
            for column, n_values in zip(rows.T, N_VALUES, strict=True):
                counts = np.bincount(column, minlength=n_values)
                total += gammaln(counts + 1).sum() + gammaln(n_values) - gammaln(len(rows) + n_values)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_groups_of_table_4_1_explain_the_requests_better_than_other_partitions(seed):
    bunch = make_meetings(random_state=seed)
    by_group = log_marginal(bunch, bunch.group)
    each_alone = {person: person for person in bunch.group}
    all_together = dict.fromkeys(bunch.group, 0)
    by_kind = {p.id: p.institution if p.institution in ("Military", "SRI") else "professor" for p in bunch.people}
    shifted = {person: bunch.group[person % 21 + 1] for person in bunch.group}
    for partition in (each_alone, all_together, by_kind, shifted):
        assert by_group > log_marginal(bunch, partition) + 100


@pytest.mark.parametrize("unlabelled", [0.25, 1.0])
def test_the_asked_share_of_each_persons_requests_has_no_answer(unlabelled):
    bunch = make_meetings(5, 40, unlabelled=unlabelled, random_state=0)
    missing = np.array([answer is None for answer in bunch.target])
    assert np.bincount(bunch.task[missing], minlength=6)[1:].tolist() == [round(40 * unlabelled)] * 5
    assert set(bunch.target[~missing]) <= {"accept", "reject"}


def test_other_numbers_of_people_cycle_through_the_team():
    few = make_meetings(5, random_state=0)
    assert few.people == TEAM[:5]
    many = make_meetings(50, random_state=0)
    assert [person.id for person in many.people] == list(range(1, 51))
    assert [many.group[i] for i in range(22, 51)] == ([many.group[i] for i in range(1, 22)] * 2)[:29]
    assert many.people[21].institution == "Military"
    assert len({person.name for person in many.people}) == 50
    assert set(many.task) == set(range(1, 51))


def test_the_description_says_that_the_data_is_made_up(meetings):
    assert "not public" in meetings.DESCR
    assert "made up" in meetings.DESCR
    assert "not public" in make_meetings.__doc__
    assert all(group.summary in meetings.DESCR for group in GROUPS.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_people": 0}, r"n_people is 0, but must be"),
        ({"n_people": 2.5}, r"n_people is 2\.5, but must be"),
        ({"n_requests": 0}, r"n_requests is 0, but must be"),
        ({"n_requests": (400, 100)}, r"n_requests is \(400, 100\), but must be"),
        ({"n_requests": (1, 2, 3)}, r"n_requests is \(1, 2, 3\), but must be"),
        ({"n_requests": "many"}, r"n_requests is 'many', but must be"),
        ({"noise": -0.1}, r"noise is -0\.1, but must be a number from 0 to 1"),
        ({"quirk": 2}, r"quirk is 2, but must be a number from 0 to 1"),
        ({"unlabelled": float("nan")}, r"unlabelled is nan, but must be a number from 0 to 1"),
        ({"frame": "arrow"}, r"frame is 'arrow', but must be"),
    ],
)
def test_a_bad_argument_is_named_with_what_is_needed(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_meetings(**arguments)
