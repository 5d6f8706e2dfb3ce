#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A web handler (WSGI) for rows that several people edit. A conflict overwrites nothing.

    GET /prices/42                                    200, the row as JSON, and its version as ETag
    PUT /prices/42   If-Match: "7"  {"price": "20"}   204; 412 without If-Match; 409: it has changed

usage: web.py [URL]      serves on port 8000
"""
import decimal
import json
import re
import sys

import rowlock


class Prices:
    """The application. A rowlock.Database may be used by all threads of a server."""

    def __init__(self, db):
        self.table = db.table("prices", key="id", columns=["price", "note"])

    def __call__(self, environ, start_response):
        path = re.fullmatch(r"/prices/(\d+)", environ["PATH_INFO"])
        handle = {"GET": self.get, "PUT": self.put}.get(environ["REQUEST_METHOD"])
        try:
            if path is None or handle is None:
                raise rowlock.Gone
            status, version, body = handle(int(path[1]), environ)
        except rowlock.Gone:
            status, version, body = 404, 0, "there is no such thing"
        except rowlock.Stale as stale:
            version = stale.outcomes[0].version
            status, body = 409, "somebody else was faster: read it again"
        except rowlock.Violation as refused:
            status, version, body = 422, 0, refused.text
        headers = [("Content-Type", "application/json")] if body else []
        if version:
            headers.append(("ETag", f'"{version}"'))
        start_response(f"{status} {REASONS[status]}", headers)
        return [json.dumps(body, default=str).encode()] if body else []

    def get(self, number, environ):
        row = self.table.read(number)
        return 200, row.pop("version"), row

    def put(self, number, environ):
        version = re.fullmatch(r'"(\d+)"', environ.get("HTTP_IF_MATCH", ""))
        if version is None:
            return 412, 0, "which version did you read? Send If-Match."
        length = int(environ.get("CONTENT_LENGTH") or 0)
        sent = json.loads(environ["wsgi.input"].read(length))
        price = decimal.Decimal(sent["price"])
        return 204, self.table.update((number, price, sent.get("note"), int(version[1]))), ""


REASONS = {
    200: "OK", 204: "No Content", 404: "Not Found", 409: "Conflict", 412: "Precondition Failed",
    422: "Unprocessable Entity",
}  # fmt: skip


def main():
    from wsgiref.simple_server import make_server

    with rowlock.connect(sys.argv[1] if len(sys.argv) > 1 else None, pool=4) as db:
        make_server("127.0.0.1", 8000, Prices(db)).serve_forever()


if __name__ == "__main__":
    main()
