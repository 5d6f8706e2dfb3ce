# SPDX-License-Identifier: MIT
# pyproject.toml has what can be said there. cffi's extension and the name of its wheel cannot.
import pathlib
import re

from setuptools import setup

HERE = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r'^__version__ = "(.+)"$', (HERE / "src/rowlock/_version.py").read_text(), re.M)

setup(
    version=VERSION.group(1),
    cffi_modules=[str(HERE / "build_rowlock.py") + ":ffi"],
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
