"""Primary keys against a dictionary: in runs, in pending writes, inside one statement."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import ConstraintViolation

KEYS = st.tuples(st.integers(0, 4), st.sampled_from(["a", "b"]))
ACTIONS = st.one_of(
    st.tuples(st.just("insert"), st.lists(KEYS, max_size=4)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("shift"), st.integers(-1, 1)),
    st.tuples(st.just("tick"), st.none()),
)


@given(actions=st.lists(ACTIONS, max_size=12))
@settings(max_examples=25)
def test_a_key_is_there_once_or_the_statement_is_refused(make_opener, actions):
    db = make_opener()()
    db.execute("CREATE TABLE t (v INT, k INT, j TEXT, PRIMARY KEY (j, k))")
    model: dict[tuple[int, str], int] = {}
    for number, (action, argument) in enumerate(actions):
        after = dict(model)
        refused = None
        try:
            if action == "insert":
                expect = len(set(argument) - model.keys()) < len(argument)
                after.update(dict.fromkeys(argument, number))
                db.insert("t", [(number, *key) for key in argument])
            elif action == "delete":
                expect = False
                after.pop(argument, None)
                db.execute("DELETE FROM t WHERE k = $1 AND j = $2", argument)
            elif action == "shift":
                expect = False
                after = {(k + argument, j): v for (k, j), v in model.items()}
                db.execute("UPDATE t SET k = k + $1", (argument,))
            else:
                expect = False
                db.tick()
        except ConstraintViolation as error:
            refused = error
            after = model
        assert (refused is not None) == expect
        if refused is not None:
            assert refused.code == "23505"
            assert refused.detail.startswith("Key (j, k)=(")
        model = after
        stored = db.execute("SELECT k, j, v FROM t").rows
        assert {(k, j): v for k, j, v in stored} == model
        assert len(stored) == len(model)


def test_a_key_that_is_not_enforced_is_not_checked(db):
    db.execute("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED)")
    db.execute("INSERT INTO t VALUES (1), (1); INSERT INTO t VALUES (1)")
    assert db.execute("SELECT count(*) FROM t").rows == [(3,)]


def test_keys_can_change_places(db):
    db.execute(
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y')"
    )
    db.execute("UPDATE t SET a = 3 - a")
    assert db.execute("SELECT * FROM t ORDER BY a").rows == [(1, "y"), (2, "x")]
