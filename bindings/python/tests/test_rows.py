# SPDX-License-Identifier: MIT
"""Rows under versions, retries and walks."""
import datetime
import decimal
import threading
import unittest
import uuid

import rowlock
from common import KIND, URL, Case, driver, execute, script, until
from rowlock import Result

D = decimal.Decimal
ENGINE = " ENGINE = InnoDB CHARACTER SET utf8mb4" if KIND == "mysql" else ""
BYTES = {"postgres": "bytea", "mysql": "BLOB", "sqlite": "BLOB"}[KIND]
MOMENT = {"postgres": "timestamp", "mysql": "DATETIME(6)", "sqlite": "TIMESTAMP"}[KIND]


class Rows(Case):
    def setUp(self):
        super().setUp()
        execute(
            "DROP TABLE IF EXISTS prices",
            "CREATE TABLE prices (id INTEGER PRIMARY KEY, price NUMERIC(12, 2), note VARCHAR(50),"
            f" version BIGINT NOT NULL){ENGINE}",
            "INSERT INTO prices VALUES (1, 10.25, 'one', 5), (2, 20.25, NULL, 6), (3, 30, 'x', 7)",
        )
        self.prices = self.db.table("prices", key="id", columns=["price", "note"])

    def all(self):
        return execute("SELECT id, price, note, version FROM prices ORDER BY id")

    def test_read(self):
        """a row is read as a dict, and Gone if it is not there"""
        row = self.prices.read(1)
        self.assertEqual(row, {"id": 1, "price": D("10.25"), "note": "one", "version": 5})
        self.assertIsInstance(row["price"], D)
        self.assertRaises(rowlock.Gone, self.prices.read, 99)
        self.assertRaises(LookupError, self.prices.read, (99,))

    def test_read_many(self):
        """many rows are read in the order of their keys, None for those that are not there"""
        rows = self.prices.read_many([3, 99, 1])
        self.assertEqual([row and row["version"] for row in rows], [7, None, 5])
        self.assertEqual(self.prices.read_many([]), [])

    def test_update(self):
        """one row is written back under its version, and Stale the second time"""
        row = self.prices.read(1)
        row["price"] += 1
        self.assertEqual(self.prices.update(row), 6)
        with self.assertRaises(rowlock.Stale) as caught:
            self.prices.update(row)
        self.assertEqual(caught.exception.outcomes, [(Result.STALE, 6)])
        self.assertEqual(self.prices.update((1, D("1.50"), "two", 6)), 7)
        self.assertEqual(self.prices.read(1)["note"], "two")
        self.assertRaises(rowlock.Gone, self.prices.update, (99, 1, "", 1))

    def test_update_many(self):
        """many rows: each has its result, and those that can be written are"""
        rows = [(1, 1, "a", 5), (2, 2, "b", 1), (99, 3, "c", 1)]
        outcomes = self.prices.update(rows)
        self.assertEqual(
            outcomes, [(Result.OK, 6), (Result.STALE, 6), (Result.GONE, 0)]
        )
        self.assertIsInstance(outcomes.error, rowlock.Stale)
        self.assertEqual(outcomes.error.row, 1)
        self.assertRaises(rowlock.Stale, outcomes.check)
        mixed = [{"id": 2, "price": D("2.5"), "note": None, "version": 6}, (3, 3, "c", 7)]
        self.assertEqual([one.result for one in self.prices.update(mixed)], [0, 0])
        self.assertEqual(self.prices.update(mixed[:0]), [])

    def test_all_or_nothing(self):
        """all or nothing: no row is written if one cannot be"""
        before = self.all()
        outcomes = self.prices.update([(1, 1, "a", 5), (2, 2, "b", 1)], all_or_nothing=True)
        self.assertEqual([one.result for one in outcomes], [Result.UNDONE, Result.STALE])
        self.assertEqual(self.all(), before)

    def test_others(self):
        """rows are inserted, touched, expected and removed"""
        version = self.prices.insert((4, D("4.00"), "four"))
        self.assertEqual(self.prices.read(4)["version"], version)
        self.assertRaises(rowlock.Exists, self.prices.insert, {"id": 4, "price": 1, "note": ""})
        version = self.prices.touch((4, version))
        self.assertEqual(self.prices.expect([(4, version)]).check()[0].result, Result.OK)
        self.prices.remove((4, version))
        self.assertRaises(rowlock.Gone, self.prices.read, 4)

    def test_violation(self):
        """a row that breaks a constraint is a Violation, and names it"""
        execute(
            "DROP TABLE IF EXISTS strict_prices",
            "CREATE TABLE strict_prices (id INTEGER PRIMARY KEY, price INTEGER NOT NULL,"
            f" version BIGINT NOT NULL){ENGINE}",
            "INSERT INTO strict_prices VALUES (1, 1, 1), (2, 1, 1)",
        )
        table = self.db.table("strict_prices", "id", ["price"])
        outcomes = table.update([(1, None, 1), (2, 5, 1)])
        self.assertEqual([one.result for one in outcomes], [Result.VIOLATION, Result.OK])
        self.assertEqual(outcomes.error.constraint, rowlock.Constraint.NOT_NULL)
        self.assertEqual(outcomes.error.row, 0)

    def test_set(self):
        """an update may be SQL with parameters"""
        table = self.db.table(
            "prices", "id", ["price"], set="price = price - ?, note = ?", parameters=["by", "why"]
        )
        table.update({"id": 3, "by": D("0.50"), "why": "sold", "version": 7})
        table.update((3, 1, "again", 8))
        self.assertEqual(execute("SELECT price, note FROM prices WHERE id = 3"), [(28.5, "again")])

    def test_wrong(self):
        """what is no value of a column is refused, and nothing is sent"""
        for wrong in (object(), [1], float("nan"), D("sNaN")):
            with self.assertRaises(rowlock.Invalid, msg=repr(wrong)):
                self.prices.update((1, wrong, "", 5))
        good = {"id": 1, "price": 1, "note": "", "version": 5}
        for wrong, told in (
            ((1, 2), "2 values and not 4"), ({"id": 1}, "has no 'price'; give id, price"),
            (5, "is of type int"), ("1234", "is of type str"),
            ({**good, "version": None}, "version is a whole number"),
            ({**good, "version": 2**63}, "version is a whole number below"),
            ({**good, "note": "\ud800"}, "note has a surrogate"),
            ({**good, "note": object()}, "note is of type object, which no column takes"),
        ):  # fmt: skip
            with self.subTest(wrong=wrong):
                with self.assertRaisesRegex(rowlock.Invalid, rf"rows\[1\].*{told}") as caught:
                    self.prices.update([good, wrong])
                self.assertEqual(caught.exception.row, 1)
        for wrong in ((1, 2), {"no": 1}, {}):
            self.assertRaisesRegex(rowlock.Invalid, "columns id,", self.prices.read, wrong)
        for wrong in ({"name": 5}, {"key": 5}, {"key": [5]}, {"columns": "price"}):
            with self.assertRaisesRegex(rowlock.Invalid, next(iter(wrong))):
                self.db.table(**{"name": "prices", "key": "id", **wrong})
        self.assertEqual(self.prices.read(1)["version"], 5)
        self.assertRaises(rowlock.Invalid, self.db.table("nowhere", "id").read, 1)
        self.assertRaises(rowlock.Invalid, self.db.table("prices", "id", ["no"]).read, 1)

    def test_unknown_column(self):
        """a name that the table does not have is refused, also in a walk, and nothing is written"""
        before = self.all()
        row = {**self.prices.read(1), "prize": 99}
        many = [self.prices.read(2), row]
        for call, rows in (
            (self.prices.update, row), (self.prices.update, many), (self.prices.touch, row),
            (self.prices.update, [(3, 1, "x", 7), row]), (self.prices.remove, row),
            (self.prices.insert, {"id": 9, "price": 1, "note": "", "prize": 99}),
        ):  # fmt: skip
            with self.assertRaisesRegex(rowlock.Invalid, "'prize'"):
                call(rows)
        with self.assertRaisesRegex(rowlock.Invalid, "'prize'"):
            for row in self.db.walk(self.prices, self.name):
                row["prize"] = 99
        self.assertEqual(self.all(), before)
        self.assert_free()

    def test_types(self):
        """each type of Python comes back as it was given"""
        decimals = "TEXT" if KIND == "sqlite" else "NUMERIC(30, 10)"
        zone = "timestamptz" if KIND == "postgres" else MOMENT
        execute(
            "DROP TABLE IF EXISTS types",
            f"CREATE TABLE types (id BIGINT PRIMARY KEY, d {decimals}, m {MOMENT}, z {zone},"
            f" b {BYTES}, o BOOLEAN, i BIGINT, s VARCHAR(100), f DOUBLE PRECISION, t DATE, c TIME,"
            f" version BIGINT NOT NULL){ENGINE}",
        )
        moment = datetime.datetime(2026, 11, 22, 13, 14, 15, 500000)
        clock = datetime.time(23, 59, 58) if KIND != "sqlite" else None
        aware = moment.replace(tzinfo=datetime.timezone.utc) if KIND == "postgres" else moment
        some = {
            "id": 2**62, "d": D("12345678901234567890.0000000001"), "m": moment, "z": aware,
            "b": b"\x00\xff'\\", "o": True, "i": -(2**63), "s": "it's ñ 鍵 \\ %s ?", "f": 0.1,
            "t": datetime.date(2026, 2, 28), "c": clock,
        }  # fmt: skip
        none = {**dict.fromkeys(some), "id": 1}
        table = self.db.table("types", "id", [name for name in some if name != "id"])
        for rows in ([some], [some, none], [none]):
            execute("DELETE FROM types")
            table.insert(rows).check()
            for row in rows:
                got = table.read(row["id"])
                del got["version"]
                if KIND == "sqlite":
                    got["d"] = got["d"] and D(got["d"])
                self.assertEqual(got, row)
                for name, value in row.items():
                    kind = type(value)
                    if kind is bool and KIND == "mysql":
                        kind = int
                    if not (KIND == "sqlite" and name == "d"):
                        self.assertIs(type(got[name]), kind, name)

    def test_not_finite(self):
        """NaN and infinity are read and written back, or refused where the database has none"""
        numbers = {"f": "REAL" if KIND == "sqlite" else "DOUBLE PRECISION", "d": "NUMERIC(30, 10)"}
        if KIND == "postgres":
            numbers["d"] = "NUMERIC"
        execute(
            "DROP TABLE IF EXISTS endless",
            f"CREATE TABLE endless (id INTEGER PRIMARY KEY, f {numbers['f']}, d {numbers['d']},"
            f" version BIGINT NOT NULL){ENGINE}",
            "INSERT INTO endless VALUES (1, 1, 1, 1), (2, 2, 2, 1)",
        )
        nan, inf = float("nan"), float("inf")
        held = {
            "postgres": [("f", nan), ("f", inf), ("f", -inf), ("d", D("NaN"))],
            "sqlite": [("f", inf), ("f", -inf)],
            "mysql": [],
        }[KIND]
        table = self.db.table("endless", "id", ["f", "d"])
        for name, value in held:
            for key in (1, 2):
                table.update({**table.read(key), name: value})
                row = table.read(key)
                self.assertEqual((str(row[name]), type(row[name])), (str(value), type(value)))
                table.update(row)
            table.update(table.read_many([1, 2])).check()
            self.assertEqual(str(table.read(2)[name]), str(value))
        wrong = [
            ("f", nan), ("f", inf), ("f", -inf), ("d", D("NaN")), ("d", D("sNaN")), ("d", D("-NaN"))
        ]  # fmt: skip
        for name, value in wrong:
            if (name, str(value)) not in [(one, str(number)) for one, number in held]:
                before = table.read_many([1, 2])
                for rows in ({**before[0], name: value}, [before[1], {**before[0], name: value}]):
                    with self.assertRaisesRegex(rowlock.Invalid, "hold|decimal number"):
                        table.update(rows)
                self.assertEqual(str(table.read_many([1, 2])), str(before))

    def test_no_other_number(self):
        """no number becomes another one: it is read back, or refused"""
        table = self.db.table("numbers", "id", ["f", "d", "i"])
        decimals = {"postgres": "NUMERIC", "mysql": "DECIMAL(65, 2)", "sqlite": "NUMERIC"}[KIND]
        execute(
            "DROP TABLE IF EXISTS numbers",
            f"CREATE TABLE numbers (id INTEGER PRIMARY KEY, f DOUBLE PRECISION, d {decimals},"
            f" i BIGINT, version BIGINT NOT NULL){ENGINE}",
            "INSERT INTO numbers VALUES (1, 1, 1, 1, 1), (2, 2, 2, 2, 1)",
        )
        integers = [0, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, 2**100]
        cases = [("f", one) for one in (-0.0, 0.1, 5e-324, 1.7e308, D("1E400"), D("1E-400"))]
        cases += [("d", D(one)) for one in (*integers, "1E400", "-1E400", "1E60", "0.25")]
        cases += [(name, one) for name in "di" for one in (*integers, 10**400)]
        refused = set()
        for name, value in cases:
            for keys in ([1], [1, 2]):
                try:
                    rows = [{**row, name: value} for row in table.read_many(keys)]
                    table.update(rows).check()
                except (rowlock.Invalid, rowlock.Violation):
                    refused.add((name, str(value)))
                    continue
                for row in table.read_many(keys):
                    self.assertEqual(row[name], value)
                    if name == "f":
                        self.assertEqual(str(row[name]), str(value))
        for always in (("f", "1E+400"), ("f", "1E-400"), ("i", str(2**63)), ("i", str(10**400))):
            self.assertIn(always, refused)
        self.assertEqual(("f", "-0.0") in refused, KIND != "postgres")
        self.assertEqual(("d", str(2**64)) in refused, KIND == "sqlite")
        self.assertEqual(("d", "1E+400") in refused, KIND != "postgres")

    def test_zones(self):
        """a time zone is kept, or refused where the column would drop it"""
        zone = datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))
        aware = datetime.datetime(2026, 11, 22, 23, 14, 15, 500000, zone)
        clock = aware.timetz()
        columns = {
            "postgres": {"m": "timestamp", "z": "timestamptz", "d": "date", "c": "time",
                         "cz": "timetz"},
            "mysql": {"m": "DATETIME(6)", "z": "TIMESTAMP(6)", "d": "DATE", "c": "TIME(6)"},
            "sqlite": {"m": "TIMESTAMP", "z": "DATETIME", "c": "TEXT"},
        }[KIND]  # fmt: skip
        kept = {"postgres": ["z", "cz"], "mysql": [], "sqlite": ["m", "z", "c"]}[KIND]
        execute(
            "DROP TABLE IF EXISTS zones",
            "CREATE TABLE zones (id INTEGER PRIMARY KEY,"
            + "".join(f" {name} {kind} NULL," for name, kind in columns.items())
            + f" version BIGINT NOT NULL){ENGINE}",
            "INSERT INTO zones (id, version) VALUES (1, 1), (2, 1)",
        )
        for name in columns:
            table = self.db.table("zones", "id", [name])
            value = clock if name.startswith("c") else aware
            for rows in ({**table.read(1), name: value}, [{**table.read(2), name: value}]):
                if name in kept:
                    table.update(rows)
                    got = table.read(1)[name]
                    self.assertEqual(got, str(value) if columns[name] == "TEXT" else value)
                else:
                    with self.assertRaisesRegex(rowlock.Invalid, "give it without"):
                        table.update(rows)
                    self.assertIsNone(table.read(1)[name])
            naive = value.replace(tzinfo=None)
            self.assertIsInstance(table.update({**table.read(1), name: naive}), int)
        if KIND != "sqlite":
            execute("CREATE UNIQUE INDEX zones_key ON zones (m)")
            with self.assertRaisesRegex(rowlock.Invalid, "give it without"):
                self.db.table("zones", "m").read(aware)
        for name in ("m", "z", "d") if KIND == "mysql" else ():
            table = self.db.table("zones", "id", [name])
            with self.assertRaisesRegex(rowlock.Invalid, "has no date"):
                table.update({**table.read(1), name: datetime.timedelta(hours=1)})

    def test_large(self):
        """an integer of more than 64 bits is written as a decimal, and a UUID as its text"""
        if KIND == "mysql":
            kind = "DECIMAL(30)"
        else:
            kind = "NUMERIC(30)" if KIND == "postgres" else "TEXT"
        execute(
            "DROP TABLE IF EXISTS large",
            f"CREATE TABLE large (id CHAR(36) PRIMARY KEY, n {kind}, version BIGINT NOT NULL)"
            f"{ENGINE}",
        )
        table, key = self.db.table("large", "id", ["n"]), uuid.uuid4()
        table.insert([(key, 2**70)]).check()
        self.assertEqual(int(table.read(key)["n"]), 2**70)

    def test_length(self):
        """a value is as long as it is, whatever its class tells"""

        class Long(bytes):
            def __len__(self):
                return 100000

            def __bytes__(self):
                return self

        class Text(str):
            def encode(self, *_):
                return Long(b"text")

        class Row(tuple):
            def __len__(self):
                return 4

        execute("DROP TABLE IF EXISTS lengths", f"CREATE TABLE lengths (id INTEGER PRIMARY KEY,"
                f" data {BYTES}, note VARCHAR(9), version BIGINT NOT NULL){ENGINE}")  # fmt: skip
        table = self.db.table("lengths", "id", ["data", "note"], first_version=1)
        rows = [(1, Long(b"x"), Text("n")), (2, b"y", "m"), (3, None, None)]
        table.insert(rows).check()
        for row in self.db.walk(table, self.name):
            if row["id"] == 3:
                row.update(data=Long(b"z"), note=Text("k"))
        found = [(row["data"], row["note"]) for row in table.read_many([1, 2, 3])]
        self.assertEqual(found, [(b"x", "n"), (b"y", "m"), (b"z", "k")])
        self.assertRaises(rowlock.Invalid, table.update, [Row((1, b"x"))])
        with self.db.once(self.name) as claim:
            claim.complete(Long(b"x"))
        self.assertEqual(self.db.once(self.name).claim().result, b"x")

    def test_defined_again(self):
        """a table that is described again and again is opened once"""
        before = sum(len(handle.tables) for handle in self.db._all)
        for _ in range(20):
            self.db.table("prices", key=["id"], columns=("price", "note")).read(1)
        self.assertLessEqual(sum(len(handle.tables) for handle in self.db._all), before + 1)
        self.prices.read(1)
        execute("ALTER TABLE prices ADD COLUMN more INTEGER")
        self.prices.reopen()
        self.assertEqual(self.prices.read(1)["version"], 5)

    def test_two_keys(self):
        """a key may have several columns"""
        execute(
            "DROP TABLE IF EXISTS two",
            "CREATE TABLE two (a VARCHAR(20), b INTEGER, n INTEGER, version BIGINT NOT NULL,"
            f" PRIMARY KEY (a, b)){ENGINE}",
            "INSERT INTO two VALUES ('x', 1, 10, 1), ('x', 2, 20, 1)",
        )
        table = self.db.table("two", ("a", "b"), ["n"])
        self.assertEqual(table.read(("x", 2))["n"], 20)
        self.assertEqual(table.read({"a": "x", "b": 1})["n"], 10)
        table.update([("x", 1, 11, 1), ("x", 2, 22, 1)]).check()
        self.assertEqual([row["n"] for row in table.read_many([("x", 2), ("x", 1)])], [22, 11])

    def test_batch(self):
        """10,000 rows are read and written"""
        rows = [(number, D(number) / 4, f"note {number}") for number in range(100, 10100)]
        self.prices.insert(rows).check()
        read = self.prices.read_many(row[0] for row in rows)
        for row in read:
            row["price"] += 1
            row["note"] = None if row["id"] % 3 else "third"
        outcomes = self.prices.update(read)
        self.assertEqual({one.result for one in outcomes}, {Result.OK})
        self.assertEqual([one.version for one in outcomes], [row["version"] + 1 for row in read])
        again = self.prices.read_many(row[0] for row in rows)
        self.assertEqual([row["price"] for row in again], [row["price"] for row in read])
        self.assertEqual([row["note"] for row in again], [row["note"] for row in read])

    def test_forked(self):
        """a child that a callback forks does not go on with the connection of its parent"""
        process = script(
            """
            import os
            db = rowlock.connect(url)
            table = db.table("prices", "id", ["price"])
            read, children = table._row, []

            def fork(row):
                if not children:
                    children.append(os.fork())
                return read(row)

            table._row = fork
            try:
                rows = table.read_many([1] * 2500)
            except rowlock.Misuse:
                rows = ["refused"]
            if not children[0]:
                print("child", rows[-1], flush=True)
                os._exit(0)
            os.wait()
            print("parent", len(rows), table.read(2)["id"])
            db.close()
            """
        )
        self.assertEqual(self.finished(process), "child refused\nparent 2500 2\n")

    # ---- retry

    def test_retry(self):
        """a retry reads, computes and writes in one transaction"""

        def work(attempt):
            for key in (1, 2):
                row = self.prices.read(key, lock=attempt.lock)
                row["price"] += 1
                self.prices.update(row)
            return attempt.number

        self.assertEqual(self.db.retry(work), 1)
        self.assertEqual([row[1] for row in self.all()][:2], [D("11.25"), D("21.25")])

    def test_retry_after_conflict(self):
        """after a conflict it is rolled back and attempted again"""
        versions = []

        def work(attempt):
            row = self.prices.read(1)
            versions.append(row["version"])
            self.prices.update((2, attempt.number, "kept once", 6))
            raise_stale = attempt.number < 3
            self.prices.update({**row, "version": row["version"] - raise_stale})
            return attempt.number

        self.assertEqual(self.db.retry(work), 3)
        self.assertEqual(versions, [5, 5, 5])
        self.assertEqual(self.prices.read(2)["version"], 7)

    def test_retry_given_up(self):
        """when the attempts are used up it raises the last conflict"""
        calls = []

        def work(attempt):
            calls.append(attempt.number)
            self.prices.update((1, 0, "", 1))

        self.assertRaises(rowlock.Stale, self.db.retry, work, attempts=3, longest_pause=0.01)
        self.assertEqual(calls, [1, 2, 3])

    def test_retry_exception(self):
        """any other exception rolls back, and is the caller's"""
        before = self.all()

        def work(attempt):
            self.prices.update((1, 0, "", 5))
            raise KeyError("mine")

        self.assertRaisesRegex(KeyError, "mine", self.db.retry, work)
        self.assertEqual(self.all(), before)
        self.assertRaises(rowlock.Misuse, self.db.retry, lambda _: self.db.retry(work))

    def test_retry_coroutine(self):
        """a coroutine function is refused: it would run after the transaction"""
        before = self.all()

        async def work(attempt):
            self.prices.update((1, 0, "", 5))

        def numbers(attempt):
            yield self.prices.update((1, 0, "", 5))

        for wrong in (work, numbers, lambda attempt: work(attempt)):
            self.assertRaises(TypeError, self.db.retry, wrong)
        self.assertEqual(self.all(), before)

    def test_retry_in_threads(self):
        """threads that add to one row lose nothing"""
        errors = []

        def add(attempt):
            row = self.prices.read(3, lock=attempt.lock)
            row["price"] += 1
            self.prices.update(row)

        def work():
            try:
                for _ in range(5):
                    self.db.retry(add, attempts=1000, deadline=60)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, self.prices.read(3)["price"]), ([], 50))

    # ---- walk

    def fill(self, count):
        self.prices.insert([(number, 1, "w") for number in range(100, 100 + count)]).check()

    def test_walk(self):
        """a walk is a loop that changes rows, and tells its progress"""
        self.fill(50)
        seen = []
        walk = self.db.walk(self.prices, self.name, chunk=10, progress=seen.append)
        for row in walk:
            if row["id"] != 2:
                row["price"] *= 2
        self.assertEqual((walk.report.rows, walk.report.written), (53, 52))
        self.assertEqual((walk.report.unchanged, walk.failures), (1, []))
        self.assertGreaterEqual(len(seen), 5)
        self.assertEqual(self.prices.read(149)["price"], 2)
        self.assertEqual(self.prices.read(2)["version"], 6)
        self.assert_free()

    def test_walk_left(self):
        """a loop that was left goes on there the next time, each row once"""
        self.fill(50)
        for row in self.db.walk(self.prices, self.name, chunk=10):
            row["note"] = "walked"
            row["price"] += 1
            if row["id"] == 125:
                break
        rest = self.db.walk(self.prices, self.name, chunk=10)
        for row in rest:
            row["price"] += 1
        self.assertTrue(rest.report.resumed)
        self.assertEqual(rest.report.written, 53)
        prices = [row[1] for row in self.all()]
        self.assertEqual(prices, [D("11.25"), D("21.25"), 31] + [2] * 50)

    def test_walk_exception(self):
        """an exception of the loop ends the walk, and gives its lock back"""
        self.fill(30)
        with self.assertRaises(KeyError):
            for row in self.db.walk(self.prices, self.name, chunk=10):
                if row["id"] == 115:
                    raise KeyError
        self.assert_free()
        with self.assertRaises(TypeError):
            for row in self.db.walk(self.prices, self.name):
                row["price"] = object()
        self.assert_free()

    def test_walk_key(self):
        """a loop that changes a key or a version gets an error that names the row"""
        before = self.all()
        for change in ({"id": 99}, {"version": 1}, {"id": 99, "price": 0}):
            walk = self.db.walk(self.prices, self.name, restart=True)
            with self.assertRaisesRegex(rowlock.Invalid, "of the row with id 2:"):
                for row in walk:
                    row.update(change if row["id"] == 2 else {})
        with self.assertRaisesRegex(rowlock.Invalid, "'version' of the row with id 2:"):
            for row in self.db.walk(self.prices, self.name, restart=True):
                if row["id"] == 2:
                    del row["version"]
        self.assertEqual(self.all(), before)
        self.assert_free()

    def test_walk_close(self):
        """a database is not closed in the loop of its walk"""
        for _ in self.db.walk(self.prices, self.name):
            self.assertRaisesRegex(rowlock.Misuse, "inside a walk", self.db.close)
            break
        self.db.close()

    def test_walk_left_open(self):
        """a loop that was left open ends with the program, or when another thread closes"""
        process = script(
            """
            import threading
            db = rowlock.connect(url)
            table = db.table("prices", "id", ["price"])
            rows = iter(db.walk(table, arguments[0]))
            next(rows)
            other = rowlock.connect(url)
            left = iter(other.walk(other.table("prices", "id"), arguments[0] + " other"))
            next(left)
            closer = threading.Thread(target=other.close)
            closer.start()
            closer.join()
            print("closed")
            """,
            self.name,
        )
        self.assertEqual(self.finished(process), "closed\n")
        self.assert_free()

    def test_walk_busy(self):
        """two walks of one name never run at once"""
        for _ in self.db.walk(self.prices, self.name):
            with self.assertRaises(rowlock.Busy):
                self.db.walk(self.prices, self.name).run()
            break

    def test_walk_conflict(self):
        """a row that was changed meanwhile comes again"""
        seen = []
        for row in self.db.walk(self.prices, self.name):
            seen.append(row["id"])
            if seen == [1]:
                self.other().table("prices", "id", ["note"]).update((1, "edited", 5))
            row["price"] = 0
        self.assertEqual(sorted(seen), [1, 1, 2, 3])
        self.assertEqual(self.prices.read(1)["note"], "edited")

    def test_walk_interrupt(self):
        """Ctrl-C ends a walk"""
        process = script(
            """
            import signal
            db = rowlock.connect(url)
            table = db.table("prices", "id", ["price"])
            try:
                for row in db.walk(table, arguments[0]):
                    signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                print("interrupted")
            db.close()
            """,
            self.name,
        )
        self.assertEqual(self.finished(process), "interrupted\n")
        self.assert_free()


if __name__ == "__main__":
    unittest.main()
