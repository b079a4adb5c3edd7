"""The fixture `host`, for test files that name this module in `pytest_plugins`."""

from collections.abc import Iterator

import pytest

from tests.replicator_host import Host


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One host for all of them: its Spark starts once."""
    started = Host(tmp_path_factory.mktemp("host"))
    yield started
    started.close()
