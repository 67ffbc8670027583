"""A server of the files of a folder, for what is read by URL."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_REFUSED = {"/private": 403, "/broken": 500}


class _Files(http.server.SimpleHTTPRequestHandler):
    def send_head(self):
        for beginning, status in _REFUSED.items():
            if self.path.startswith(beginning):
                self.send_error(status)
                return None
        return super().send_head()

    def log_message(self, *_):
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; what is under /private is refused, under /broken it breaks.

    Yields
    ------
    str
        Its address as HOST:PORT.
    """
    handler = functools.partial(_Files, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
