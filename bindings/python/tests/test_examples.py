# SPDX-License-Identifier: MIT
"""The programs of examples/python, and the code of docs/PYTHON.md."""
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import wsgiref.util
import wsgiref.validate

import rowlock
from common import KIND, URL, Case, execute, needs

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "python"
ENGINE = " ENGINE = InnoDB" if KIND == "mysql" else ""


# What the blocks import that are not of this package.
RECIPE = "^(from|import) (django|sqlalchemy|celery)"
# How SQLAlchemy connects to the test's database.
ENGINE_OF_DOCUMENT = '"postgresql+psycopg2://app@db1/prod"'
ENGINES = {
    "postgres": '"postgresql+psycopg2://", creator=common.connect_psycopg2',
    "mysql": '"mysql+mysqldb://", creator=common.connect_mysqlclient',
    "sqlite": '"sqlite://", creator=common.connect_sqlite3',
}


def begin(program, *arguments):
    command = [sys.executable, "-X", "dev", str(program), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Client:
    """Calls a WSGI application, and checks that both keep to PEP 3333."""

    def __init__(self, application):
        self.application = wsgiref.validate.validator(application)

    def request(self, method, path, body=None, **headers):
        data = json.dumps(body).encode() if body is not None else b""
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "CONTENT_LENGTH": str(len(data))}
        environ.update({f"HTTP_{name.upper()}": value for name, value in headers.items()})
        environ["wsgi.input"] = io.BytesIO(data)
        wsgiref.util.setup_testing_defaults(environ)
        environ.update(SCRIPT_NAME="", QUERY_STRING="")
        answer = {}

        def start_response(status, headers, error=None):
            answer.update(status=int(status[:3]), headers=dict(headers))
            return lambda data: None

        parts = self.application(environ, start_response)
        text = b"".join(parts)
        parts.close()
        return answer["status"], answer["headers"].get("ETag"), json.loads(text or "null")


class Examples(Case):
    def test_nightly(self):
        """nightly.py reports, and leaves it to another host that is at it"""
        out = self.finished(begin(EXAMPLES / "nightly.py", URL))
        self.assertRegex(out, r"^reported, with token \d+\n$")
        self.assertEqual(execute("SELECT number FROM reports ORDER BY number"), [(0,), (1,), (2,)])
        with self.db.lock("nightly"):
            out = self.finished(begin(EXAMPLES / "nightly.py", URL))
        self.assertRegex(out, "^another host is at it: .")

    def test_web(self):
        """web.py: of two who edit the same row the second is told"""
        execute(
            "DROP TABLE IF EXISTS prices",
            "CREATE TABLE prices (id INTEGER PRIMARY KEY, price NUMERIC(12, 2), note VARCHAR(50),"
            f" version BIGINT NOT NULL){ENGINE}",
            "INSERT INTO prices VALUES (42, 10.25, 'one', 7)",
        )
        sys.path.insert(0, str(EXAMPLES))
        self.addCleanup(sys.path.remove, str(EXAMPLES))
        import web

        client = Client(web.Prices(self.db))
        status, tag, row = client.request("GET", "/prices/42")
        self.assertEqual((status, tag), (200, '"7"'))
        self.assertEqual(row, {"id": 42, "price": "10.25", "note": "one"})
        put = {"price": "20.75", "note": "mine"}
        self.assertEqual(client.request("PUT", "/prices/42", put, if_match=tag)[:2], (204, '"8"'))
        put = {"price": "99.75", "note": "theirs"}
        self.assertEqual(client.request("PUT", "/prices/42", put, if_match=tag)[:2], (409, '"8"'))
        self.assertEqual(client.request("PUT", "/prices/42", put)[0], 412)
        self.assertEqual(client.request("GET", "/prices/42")[2]["note"], "mine")
        self.assertEqual(client.request("GET", "/prices/43")[0], 404)
        self.assertEqual(client.request("GET", "/elsewhere")[0], 404)

    def test_workers(self):
        """workers.py: two programs at once do each order once"""
        both = [begin(EXAMPLES / "workers.py", URL, "40") for _ in range(2)]
        for one in both:
            self.assertEqual(self.finished(one), "40 orders are done\n")
        with self.db.once("order 39") as claim:
            self.assertEqual(claim.result, b"receipt of order 39")
        self.assertEqual(self.db.grants("order 39"), [])

    def test_document(self):
        """the code of docs/PYTHON.md runs"""
        text = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        self.assertLessEqual(len(blocks[0].strip().splitlines()), 10)
        head = (ROOT / "bindings" / "python" / "tests" / "document.py").read_text(encoding="utf-8")
        head = re.sub(r"\bURL\b", repr(URL), head)
        blocks = [block.replace('"postgresql://app@db1/prod"', repr(URL)) for block in blocks]
        blocks = [block for block in blocks if not re.search(RECIPE, block, re.M)]
        # The first makes a database of its own. The others have one, and follow one another.
        self.run_program(head.replace("db.install()", "db.close()", 1) + blocks[0])
        self.run_program("\n".join([head, *map(in_function, blocks[1:])]))

    def recipe(self, module, package, before, after):
        """Runs the block of docs/PYTHON.md that imports this module, between before and after."""
        needs(module, package)
        text = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")
        text = text.replace('"postgresql://app@db1/prod"', repr(URL))
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        (locks,) = (block for block in blocks if "def locks()" in block)
        (block,) = (one for one in blocks if re.search(rf"^(from|import) {module}", one, re.M))
        head = (ROOT / "bindings" / "python" / "tests" / "document.py").read_text(encoding="utf-8")
        program = "\n".join([re.sub(r"\bURL\b", repr(URL), head), before, locks, block, after])
        program = program.replace(ENGINE_OF_DOCUMENT, ENGINES[KIND])
        return self.run_program(f"import warnings\nwarnings.simplefilter('ignore')\n{program}")

    def stock(self):
        return execute("SELECT n FROM stock WHERE id = 1")

    def test_django(self):
        """the recipe for Django of docs/PYTHON.md runs"""
        before = f"os.environ['ROWLOCK_TEST_KIND'] = {KIND!r}\nimport test_django\n"
        self.recipe("django", "python3-django", before + "test_django.configure()", "")
        self.assertEqual(self.stock(), [(11,)])

    def test_sqlalchemy(self):
        """the recipe for SQLAlchemy of docs/PYTHON.md runs"""
        self.recipe("sqlalchemy", "python3-sqlalchemy", "", "engine.dispose()")
        self.assertEqual(self.stock(), [(11,)])

    def test_celery(self):
        """the recipe for Celery of docs/PYTHON.md runs, is done once, and is tried again if busy"""
        after = """
with rowlock.connect(URL) as other, other.lock("restock"):
    said = restock.apply(args=[1], throw=False)
    print(said.state)
print(restock.apply(args=[2]).get(), restock.apply(args=[2]).get())
"""
        after = after.replace("URL", repr(URL))
        out = self.recipe("celery", "python3-celery", "", "restock.max_retries = 0" + after)
        self.assertEqual(out, "FAILURE\nreceipt 2 receipt 2\n")

    def test_help(self):
        """the lines of help(rowlock) run"""
        (block,) = re.findall(r"^((?:    .*\n|\n)+)^connect\(\)", rowlock.__doc__, re.M)
        text = textwrap.dedent(block).strip()
        self.assertLessEqual(len(text.splitlines()), 10)
        text = text.replace('"postgresql://app@db1/prod"', repr(URL))
        self.assertRegex(self.run_program(text), "^token [0-9]+\n$")

    def run_program(self, text):
        program = pathlib.Path(tempfile.mkdtemp(), "program.py")
        program.write_text(text, encoding="utf-8")
        return self.finished(begin(program))


def in_function(block):
    """A block that awaits is a coroutine function. The others stay as they are."""
    if "await " not in block:
        return block
    lines = "".join(f"    {line}\n" for line in block.splitlines())
    return f"async def document():\n{lines}\nasyncio.run(document())\n"


if __name__ == "__main__":
    unittest.main()
