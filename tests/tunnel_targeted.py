"""The fixture `target`, for test files that name this module in `pytest_plugins`."""

from collections.abc import Iterator

import pytest

from tests.tunnel_targets import Target, echo


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    target = Target(echo)
    yield target
    target.listening.close()
