"""Embedding models that count what they are asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings


class Counting(Embeddings):
    """Vectors that depend on the text alone, and a list of every call."""

    def __init__(self, size=8, model="counting-1"):
        self.model = model
        self.dimensions = size
        self.inner = DeterministicFakeEmbedding(size=size)
        self.__dict__["calls"] = calls = Calls()
        self.asked = calls.asked

    def embed_documents(self, texts):
        self.calls.add(texts)
        return self.inner.embed_documents(texts)

    def embed_query(self, text):
        self.calls.add([text])
        return self.inner.embed_query(f"query: {text}")


class Calls:
    """What was asked; no plain value, so it is no part of what the model is."""

    def __init__(self):
        self.lists = []

    def add(self, texts):
        self.lists.append(list(texts))

    def asked(self):
        return [text for texts in self.lists for text in texts]


class Giving(Embeddings):
    """Gives what it is told to, whatever it is asked."""

    model = "giving"

    def __init__(self, rows):
        self.rows = lambda: rows

    def embed_documents(self, texts):
        return self.rows()

    def embed_query(self, text):
        return self.rows()[0]


class EmbeddingServer:
    """OpenAI's way of asking for embeddings, over a real socket."""

    def __init__(self, refuse=None):
        self.asked, self.keys, self.paths, self.refuse = [], [], [], refuse
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.keys.append(self.headers["Authorization"])
                server.paths.append(self.path)
                status, reply = server.reply(body)
                raw = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # a client that hangs up is no news
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def reply(self, body):
        if self.refuse is not None:
            return 401, {"error": {"message": self.refuse}}
        self.asked.append(body["input"])
        data = [
            {"object": "embedding", "index": at, "embedding": vector_of(text)}
            for at, text in enumerate(body["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return 200, {"object": "list", "data": data, "model": body["model"], "usage": usage}

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.http.shutdown()
        self.http.server_close()


def vector_of(text):
    """Longer texts point elsewhere."""
    return np.cos(np.arange(4) * len(text)).tolist()
