"""Which cluster is worked on, and what is said where there is none."""

import os
import socket
import sys
import types

import pytest

from misslink.engines.ray import cluster
from misslink.engines.ray.cluster import connect_cluster
from misslink.engines.ray.engine import open_ray
from misslink.errors import EngineUnreachableError, InputError, MissingExtraError
from misslink.registry import engines


@pytest.fixture
def unconnected(monkeypatch):
    """A Ray that is not connected yet, and never gets as far as starting anything."""
    exceptions = pytest.importorskip("ray").exceptions
    ray = types.SimpleNamespace(is_initialized=lambda: False, exceptions=exceptions)
    monkeypatch.setattr(cluster, "import_ray", lambda: ray)
    return ray


def test_without_ray_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it fails
    with pytest.raises(MissingExtraError, match=r"pip install 'misslink\[ray\]'") as caught:
        engines.get("ray")(None, 2)
    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("unconnected")
@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:", ":6379", "head:0", ""])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="write auto, or HOST:PORT"):
        connect_cluster(address, None)


@pytest.mark.usefixtures("unconnected")
def test_an_address_where_nobody_answers_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        with pytest.raises(EngineUnreachableError, match="no connection to --ray-address") as said:
            connect_cluster(f"127.0.0.1:{taken.getsockname()[1]}", None)
    assert said.value.exit_code == 3
    assert "ray start --head" in str(said.value)


def test_no_cluster_on_this_machine_is_told(unconnected, monkeypatch, tmp_path):
    def init(**_):
        raise ConnectionError("Could not find any running Ray instance.")

    unconnected.init = init
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(EngineUnreachableError, match=r"no Ray cluster on this machine .*--head"):
        connect_cluster("auto", None)


def test_auto_takes_the_address_of_the_environment(unconnected, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    with pytest.raises(InputError, match="--ray-address is nonsense"):
        connect_cluster("auto", None)


@pytest.mark.usefixtures("unconnected")
def test_a_cluster_that_ended_without_a_word_is_told_at_once(monkeypatch, tmp_path):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "ray" / "ray_current_cluster").write_text(address, encoding="utf-8")
        with pytest.raises(EngineUnreachableError, match=f"no connection to .*{address}"):
            connect_cluster("auto", None)


def test_the_address_of_the_command_wins_over_the_environments(unconnected, monkeypatch):
    seen = []

    def init(**options):
        seen.append((options["address"], os.environ.get("RAY_ADDRESS")))
        raise ConnectionError

    unconnected.init = init
    monkeypatch.setenv("RAY_ADDRESS", "elsewhere:6379")
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"127.0.0.1:{there.getsockname()[1]}"
        with pytest.raises(EngineUnreachableError, match="does not let this process join"):
            connect_cluster(address, None)
    assert seen == [(address, None)]
    assert os.environ["RAY_ADDRESS"] == "elsewhere:6379"


def test_the_cluster_that_was_started_last_is_left_to_ray_to_find_with_its_token(
    unconnected, monkeypatch, tmp_path
):
    seen = []

    def init(**options):
        seen.append(options["address"])
        raise ConnectionError

    unconnected.init = init
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"127.0.0.1:{there.getsockname()[1]}"
        (tmp_path / "ray" / "ray_current_cluster").write_text(address, encoding="utf-8")
        with pytest.raises(EngineUnreachableError):
            connect_cluster("auto", None)
    assert seen == ["auto"]


def test_a_cluster_that_wants_a_token_says_where_it_comes_from(unconnected, monkeypatch):
    def init(**_):
        raise unconnected.exceptions.AuthenticationError("token is missing or incorrect")

    unconnected.init = init
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"127.0.0.1:{there.getsockname()[1]}"
        with pytest.raises(EngineUnreachableError, match="set RAY_AUTH_MODE=token and") as said:
            connect_cluster(address, None)
    assert "\n" not in str(said.value)


def test_more_workers_than_the_memory_could_hold_are_refused_before_anything_starts(unconnected):
    unconnected.init = None  # calling it would fail
    with pytest.raises(InputError, match=r"--workers is 1000000, and this machine has .* write"):
        connect_cluster(None, 1_000_000)


@pytest.mark.slow
def test_more_workers_than_a_cluster_could_hold_are_refused(two_nodes):
    with pytest.raises(InputError, match="the cluster has 4 processors; write 128 or less"):
        connect_cluster(two_nodes.address, 129)


@pytest.mark.slow
def test_a_connection_that_somebody_made_is_used_and_left(two_nodes):
    import ray

    opened = open_ray(two_nodes.address)
    assert opened.count == 4  # processors of both nodes
    assert opened._cluster.shared
    opened._cluster.leave()
    assert ray.is_initialized()


@pytest.mark.parametrize(
    ("mine", "others", "shared"),
    [
        (("a", "10.0.0.1"), [("a", "10.0.0.1")], True),
        (("a", "10.0.0.1"), [("b", "10.0.0.2")], False),
        (("a", "10.0.0.1"), [("a", "10.0.0.2")], False),
    ],
)
def test_files_are_shared_where_all_nodes_are_this_machine(unconnected, mine, others, shared):
    nodes = [
        {
            "Alive": True,
            "NodeID": str(number),
            "NodeManagerHostname": host,
            "NodeManagerAddress": address,
            "Resources": {"CPU": 1.0},
        }
        for number, (host, address) in enumerate([mine, *others])
    ]
    unconnected.is_initialized = lambda: True
    unconnected.nodes = lambda: nodes
    context = types.SimpleNamespace(get_node_id=lambda: "0")
    unconnected.get_runtime_context = lambda: context
    assert connect_cluster(None, None).shared is shared
