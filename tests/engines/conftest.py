"""A real Ray cluster of two nodes on this machine, for all tests of the engine."""

import pytest


@pytest.fixture(scope="package")  # this folder has an __init__.py: after it Ray's processes end
def two_nodes():
    """A cluster of two nodes with two processors each; this process is connected to it."""
    pytest.importorskip("ray")
    from misslink.engines.ray.cluster import import_ray

    ray = import_ray()
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(num_cpus=2, object_store_memory=100 * 2**20)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()
