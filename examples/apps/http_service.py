"""An app behind HTTP, in any language; http_service.toml tells misslink how to ask it."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from function import app


class Handler(BaseHTTPRequestHandler):
    """Answers POST /ask."""

    def do_POST(self) -> None:
        """Answer a question."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = app(body["query"])
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"data": reply}).encode())


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8123), Handler).serve_forever()
