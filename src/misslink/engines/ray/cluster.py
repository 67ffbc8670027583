"""Connect to a Ray cluster, or start one on this machine."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import EngineUnreachableError, InputError, MissingExtraError

_MAX_WORKERS_PER_CPU = 32  # workers of a processor: each is a process of 100 MB and more
_CONNECT_TIMEOUT_S = 5.0  # for an address to answer at all; Ray itself would try for minutes
_ADDRESS_VARIABLE = "RAY_ADDRESS"
_START_HINT = (
    "start one with  ray start --head  and run this on one of its machines, or leave "
    "--ray-address out for a cluster of this machine alone"
)


@dataclass(frozen=True)
class RayCluster:
    """A cluster that this process is connected to.

    Parameters
    ----------
    processors : int
        At least 1.
    shared : bool
        Whether all its nodes are this machine, so that they see the same files.
    ours : bool
        Whether the connection was made here, and ends with the run.
    """

    processors: int
    shared: bool
    ours: bool

    def leave(self) -> None:
        """End the connection; a cluster of this machine that was started for it ends too."""
        if self.ours:
            import_ray().shutdown()


def import_ray() -> Any:
    """Import Ray with its usage reports disabled; raises MissingExtraError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray would say at every start that it will treat idle graphics cards otherwise some day.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("Ray, which --engine ray needs,", "ray") from error
    return ray


def connect_cluster(address: str | None, workers: int | None) -> RayCluster:
    """Connect to a cluster, or start one; an existing connection of this process is reused.

    Parameters
    ----------
    address : str or None
        ``auto`` or ``HOST:PORT``. None: a cluster of this machine alone.
    workers : int or None
        Requested workers; a cluster that is started has at least as many processors.

    Raises
    ------
    EngineUnreachableError
        There is none, or it does not answer.
    InputError
        The address is invalid, or there are too many workers.
    MissingExtraError
        Ray is not installed.
    """
    ray = import_ray()
    ours = not ray.is_initialized()
    if ours:
        if address is None:
            cpus = os.cpu_count() or 1
            _check_count(workers, cpus, "this machine")
            _start_cluster(ray, max(workers or 1, cpus))
        else:
            _join_cluster(ray, _check_address(address))
    nodes = [node for node in ray.nodes() if node["Alive"]]
    own_node = ray.get_runtime_context().get_node_id()
    machine = {_node_machine(node) for node in nodes if node["NodeID"] == own_node}
    processors = max(1, int(sum(node["Resources"].get("CPU", 0) for node in nodes)))
    cluster = RayCluster(processors, {_node_machine(node) for node in nodes} == machine, ours)
    try:
        _check_count(workers, processors, "the cluster")
    except InputError:
        cluster.leave()
        raise
    return cluster


def _check_count(workers: int | None, processors: int, where: str) -> None:
    most = _MAX_WORKERS_PER_CPU * processors
    if workers is not None and workers > most:
        raise InputError(
            f"--workers is {workers}, and {where} has {processors} processors; write {most} or "
            "less: workers are processes; --concurrency sets the number of calls at once"
        )


def _start_cluster(ray: Any, processors: int) -> None:
    try:
        ray.init(
            address="local",
            num_cpus=processors,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise EngineUnreachableError(
            f"Ray did not start on this machine ({_error_text(error)}); --engine local needs none"
        ) from error


def _join_cluster(ray: Any, address: str) -> None:
    # Ray would let the variable win over what the command says.
    elsewhere = os.environ.pop(_ADDRESS_VARIABLE, None)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if address == "auto":
            problem = (
                f"there is no Ray cluster on this machine ({_error_text(error)}); {_START_HINT}"
            )
        else:
            problem = (
                f"the Ray cluster at {address} does not let this process join "
                f"({_error_text(error)}); run this on one of its machines, and if it requires a token, "
                "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to what  ray get-auth-token  prints there"
            )
        raise EngineUnreachableError(problem) from error
    finally:
        if elsewhere is not None:
            os.environ[_ADDRESS_VARIABLE] = elsewhere


def _check_address(address: str) -> str:
    """Return an address that answers, or ``auto``."""
    target, started_address = address.strip(), None
    if target == "auto":
        variable = os.environ.get(_ADDRESS_VARIABLE, "").strip()
        started_address = None if variable else _last_started_address()
        target = variable or started_address or "auto"
        if target in ("auto", "local"):
            return "auto"
    host, colon, port = target.rpartition(":")
    if "://" in target or not (host and colon and port.isdigit() and 0 < int(port) < 2**16):
        raise InputError(
            f"--ray-address is {target}; write auto, or HOST:PORT as  ray start --head  says it "
            "(ray://, Ray's client, is not supported: run this on one of the cluster's machines)"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise EngineUnreachableError(
            f"no connection to --ray-address {target} ({_error_text(error)}); {_START_HINT}"
        ) from error
    # Ray takes this machine's token of itself only where it finds the cluster itself.
    return target if started_address is None else "auto"


def _last_started_address() -> str | None:
    """Where ``ray start`` says that its last cluster is; it may have ended without taking it back.

    Ray reads the same file, and tries for minutes to reach what is no longer there.
    """
    file = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")  # noqa: S108
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _node_machine(node: Any) -> tuple[str, str]:
    return node["NodeManagerHostname"], node["NodeManagerAddress"]


def _error_text(error: Exception) -> str:
    words = " ".join(str(error).split())
    return words[:200] or type(error).__name__
