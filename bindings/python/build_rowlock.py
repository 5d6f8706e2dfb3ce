# SPDX-License-Identifier: MIT
"""Builds rowlock._rowlock, the extension that calls librowlock (cffi, API mode)."""
import os
import pathlib
import re
import shlex
import subprocess

from cffi import FFI

HERE = pathlib.Path(__file__).resolve().parent

# Callbacks that the library calls in the thread that called it. None belongs to a keeper.
CALLBACKS = """
extern "Python" {
    int rowlock_py_each_grant(void *context, const rowlock_grant *grant);
    int rowlock_py_each_waiter(void *context, const rowlock_waiter *waiter);
    int rowlock_py_each_row(void *context, size_t index, const rowlock_row *row);
    int rowlock_py_attempt(void *context, const rowlock_attempt *attempt);
    int rowlock_py_walk_each(void *context, const rowlock_row *row, rowlock_value *values);
    void rowlock_py_walk_progress(void *context, const rowlock_walk_report *so_far);
    void rowlock_py_walk_failed(void *context, const rowlock_row *row, int result,
                                const char *text);
}
"""


def pkg_config(*words: str) -> "list[str]":
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), *words, "rowlock"]
    try:
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            f"librowlock was not found ({shlex.join(command)}): install it first (make install), "
            "or set PKG_CONFIG_PATH to the folder of rowlock.pc"
        ) from error
    return shlex.split(said)


def folder_to_know() -> "str | None":
    """Where the library is, if the loader of programs does not look there without ldconfig."""
    libdir = "".join(pkg_config("--variable=libdir"))
    # pkg-config puts the folder of a package that is being made before it.
    libdir = libdir.removeprefix(os.environ.get("PKG_CONFIG_SYSROOT_DIR", ""))
    known = re.fullmatch(r"/(usr/)?lib(32|64)?(/[^/]+-linux-[^/]+)?/?", libdir)
    return None if known else libdir


def initializers(cdef: str) -> str:
    names = re.findall(r"^(\w+) \1_init\(void\);$", cdef, flags=re.M)
    return "".join(
        f"static {name} {name}_init(void)\n"
        f"{{\n    {name} made = {name.upper()}_INIT;\n    return made;\n}}\n"
        for name in names
    )


def glue_declarations(glue: str) -> str:
    heads = re.findall(r"^static (void rowlock_py_\w+\([^)]*\))\n\{", glue, flags=re.M)
    return "".join(f"{head};\n" for head in heads)


def make() -> FFI:
    cdef = (HERE / "cdef.h").read_text(encoding="utf-8")
    glue = (HERE / "glue.c").read_text(encoding="utf-8")
    headers = re.findall(r"^/\* (\w+\.h) \*/$", cdef, flags=re.M)
    includes = "".join(f"#include <rowlock/{name}>\n" for name in headers)
    ffi = FFI()
    ffi.cdef(cdef + glue_declarations(glue) + CALLBACKS)
    rpath = os.environ.get("ROWLOCK_RPATH") or folder_to_know()
    ffi.set_source(
        "rowlock._rowlock",
        includes + initializers(cdef) + glue,
        py_limited_api=True,
        extra_compile_args=pkg_config("--cflags"),
        extra_link_args=pkg_config("--libs") + ([f"-Wl,-rpath,{rpath}"] if rpath else []),
    )
    return ffi


ffi = make()

if __name__ == "__main__":
    ffi.compile(verbose=True)
