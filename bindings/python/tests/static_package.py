# SPDX-License-Identifier: MIT
"""The package without a database."""
import ast
import os
import pathlib
import pydoc
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import rowlock

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
ROOT = PACKAGE.parents[1]
PUBLIC = sorted(
    name
    for name, one in vars(rowlock).items()
    if name[0] != "_" and not isinstance(one, types.ModuleType)
)
SOURCES = sorted((PACKAGE / "src" / "rowlock").glob("*.py"))


def run(*command, env=None):
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=PACKAGE, env=env
    )


# What a strict program relies on.
USES = """
import asyncio
from typing import Any, Coroutine, Optional

@rowlock.exclusive("a", on_busy="skip")
def skipped(day: str) -> int:
    return 1

@rowlock.exclusive("a", on_busy="skip")
async def skipped_soon(day: str) -> int:
    return 1

@rowlock.exclusive("a", wait=5)
def run(day: str) -> int:
    return 1

@rowlock.exclusive("a", pass_held=True)
def fenced(day: str, held: rowlock.Held) -> int:
    return held.token

a: Optional[int] = skipped("monday")
b: Coroutine[Any, Any, Optional[int]] = skipped_soon("monday")
c: int = run("monday") + 1
fenced("monday")
reveal_type(skipped("monday"))

def use(table: rowlock.Table, row: "dict[str, Any]") -> None:
    one: int = table.update(row) + table.update((1, 2, 3)) + table.insert(row)
    many: rowlock.Outcomes = table.update([row, (1, 2, 3)])
    for outcome in table.remove([row]).check():
        print(outcome.version, one, many)
"""


class Package(unittest.TestCase):
    maxDiff = None

    def test_cdef_of_a_change(self):
        """the script notices another member, and another function"""
        made = run(sys.executable, "tools/make-cdef").stdout
        with tempfile.TemporaryDirectory() as folder:
            for header in (ROOT / "include" / "rowlock").glob("*.h"):
                text = header.read_text(encoding="utf-8")
                text = text.replace("    int64_t ttl_ms;", "    int64_t ttl_ms;\n    int added;", 1)
                pathlib.Path(folder, header.name).write_text(text, encoding="utf-8")
            pathlib.Path(folder, "new.h").write_text("ROWLOCK_API int rowlock_new(void);\n")
            other = run(sys.executable, "tools/make-cdef", folder).stdout
        self.assertNotIn("int added;", made)
        self.assertIn("int added;", other)
        self.assertTrue(other.endswith("int rowlock_new(void);\n"))

    def test_installed(self):
        """a library outside of the loader's folders is found; later its absence is explained"""
        installed = pathlib.Path(rowlock.__file__).parents[2] / "root"
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder, "rowlock")
            shutil.copytree(PACKAGE / "src" / "rowlock", made)
            shutil.copytree(installed / "lib", pathlib.Path(folder, "lib"), symlinks=True)
            about = pathlib.Path(folder, "lib", "pkgconfig", "rowlock.pc")
            text = about.read_text(encoding="utf-8")
            about.write_text(re.sub("^libdir=.*", f"libdir={folder}/lib", text, flags=re.M))
            environ = {**os.environ, "PKG_CONFIG_PATH": str(about.parent), "CFLAGS": "-O0"}
            environ.pop("ROWLOCK_RPATH", None)
            build = f"import build_rowlock; build_rowlock.ffi.compile(tmpdir={folder!r})"
            built = run(sys.executable, "-c", build, env=environ)
            self.assertEqual(built.returncode, 0, built.stdout)
            environ["PYTHONPATH"] = folder
            use = (sys.executable, "-c", "import rowlock; print(rowlock.__file__)")
            self.assertEqual(run(*use, env=environ).stdout, f"{made}/__init__.py\n")
            shutil.rmtree(about.parents[1])
            said = run(*use, env=environ).stdout
            self.assertRegex(said.splitlines()[-1], "^ImportError: .* run ldconfig as root")

    def test_results(self):
        """the results are those of the header"""
        header = (ROOT / "include" / "rowlock" / "rowlock.h").read_text(encoding="utf-8")
        there = dict(re.findall(r"^    ROWLOCK_(\w+) = (-?\d+),?$", header, re.M))
        known = {one.name: str(one.value) for one in rowlock.Result}
        self.assertEqual({k: v for k, v in there.items() if k in known}, known)
        results = re.search(r"enum rowlock_result \{(.*?)\} rowlock_result;", header, re.S).group(1)
        self.assertEqual(set(re.findall(r"^    ROWLOCK_(\w+) =", results, re.M)), set(known))

    def test_types(self):
        """mypy --strict finds nothing, also in a program that uses each public name"""
        # An old mypy needs comments that a new one does not.
        how = "--strict --no-warn-unused-ignores --python-version=3.9 --cache-dir=/dev/null".split()
        with tempfile.TemporaryDirectory() as folder:
            user = pathlib.Path(folder, "user_of_rowlock.py")
            used = "".join(f"print(rowlock.{name})\n" for name in PUBLIC)
            imports = f"import rowlock\nfrom rowlock import {', '.join(PUBLIC)}\n"
            user.write_text(imports + used + USES)
            ran = run("/usr/bin/mypy", *how, "src", str(user))
        self.assertEqual((ran.returncode, ran.stdout), (0, ran.stdout), ran.stdout)
        self.assertRegex(ran.stdout, r'Revealed type is "Union\[.*int, None\]"')

    def test_typed(self):
        """the package says that it is typed, and has one extension for all versions"""
        folder = pathlib.Path(rowlock.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        self.assertTrue((folder / "_rowlock.abi3.so").exists())

    def test_syntax(self):
        """its files are valid for Python 3.9"""
        for path in SOURCES:
            ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))

    def test_version(self):
        """its version is the library's"""
        from rowlock._rowlock import ffi, lib

        self.assertEqual(rowlock.__version__, ffi.string(lib.rowlock_version()).decode())

    def test_columns(self):
        """lines have at most 100 columns"""
        for path in [*SOURCES, *HERE.glob("*.py"), *PACKAGE.glob("*.py"), PACKAGE / "glue.c"]:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                self.assertLessEqual(len(line), 100, f"{path}:{number}")

    def test_help(self):
        """help(rowlock) is short, and shows no class in full"""
        lines = pydoc.plain(pydoc.render_doc(rowlock)).splitlines()
        self.assertLess(len(lines), 130, "\n".join(lines))
        self.assertNotIn("CLASSES", lines)
        self.assertIn("    db = rowlock.connect(", "\n".join(lines))

    def test_public(self):
        """each public name is of the package, and help(rowlock) has the class of each result"""
        for name in PUBLIC:
            one = getattr(rowlock, name)
            self.assertEqual((one.__module__, one.__name__), ("rowlock", name))
        for one in rowlock.Error.__subclasses__():
            for kind in one.__subclasses__():
                self.assertIn(kind.__name__, rowlock.__doc__)


if __name__ == "__main__":
    unittest.main()
