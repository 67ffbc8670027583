import socket
import threading
from contextlib import contextmanager

import pytest

from misslink.canary.webhook import DeliveryFailedError, http_post, parse_url, url_origin


@contextmanager
def listener(talk):
    """A server that takes one connection and does with it what `talk` does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                talk(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        finally:
            thread.join()


def test_a_server_that_never_answers_is_left_in_time():
    with (
        listener(lambda connection: connection.makefile("rb").read()) as url,
        pytest.raises(DeliveryFailedError, match="no answer"),
    ):
        http_post(parse_url(url), b"{}", {}, timeout_s=0.2)


def test_an_answer_that_comes_in_drops_is_left_in_time():
    """Each drop comes within the timeout of a read; all of them do not."""
    left = threading.Event()

    def drip(connection):
        try:
            while not left.wait(0.02):
                connection.sendall(b"H")
        except OSError:
            left.set()

    with listener(drip) as url:
        with pytest.raises(DeliveryFailedError, match=r"no answer|HTTP"):
            http_post(parse_url(url), b"{}", {}, timeout_s=0.3)
        left.set()


@pytest.mark.parametrize("answer", [b"", b"hello\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_no_http_is_told(answer):
    def talk(connection):
        connection.recv(65536)
        connection.sendall(answer)

    with listener(talk) as url, pytest.raises(DeliveryFailedError):
        http_post(parse_url(url), b"", {}, timeout_s=5)


def test_a_body_that_never_ends_is_not_read():
    def talk(connection):
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 204 No Content\r\nContent-Length: 999999999\r\nX-A: b\r\n\r\n"
        )

    with listener(talk) as url:
        status, headers = http_post(parse_url(url), b"{}", {}, timeout_s=5)
    assert (status, headers["x-a"]) == (204, "b")


def test_only_the_origin_of_an_address_is_shown():
    assert url_origin(parse_url("https://u:p@host:8443/T0/SECRET?k=v")) == "https://host:8443"
    assert url_origin(parse_url("http://[::1]:80/x")) == "http://[::1]:80"


@pytest.mark.parametrize("url", ["", "host/x", "file:///etc/passwd", "http://", "http://h:x/"])
def test_other_addresses_are_none(url):
    assert parse_url(url) is None


def test_a_host_with_control_characters_cannot_be_used():
    with pytest.raises(DeliveryFailedError):
        http_post(parse_url("http://a b/x"), b"", {}, timeout_s=2)
