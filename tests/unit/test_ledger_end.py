"""A writer knows by the offsets of its own records when its ledger has lost its tail."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.errors import Unavailable
from barnabas.ledger.registration import LedgerEnd


def delivered(*offsets: int | None) -> LedgerEnd:
    """The end after delivery reports with these offsets, behind a registration at 10."""
    end = LedgerEnd("_barnabas.m", 10)
    for offset in offsets:
        end.delivered(None, cast(Any, SimpleNamespace(offset=lambda offset=offset: offset)))
    return end


def test_offsets_that_rise_are_committed() -> None:
    delivered(11, 12, 40).refuse_cut()


@pytest.mark.parametrize("offsets", [(10,), (3,), (11, 11), (40, 12), (None,), (3, 50)])
def test_an_offset_that_does_not_rise_is_refused_before_the_commit(offsets: tuple[int | None, ...]) -> None:
    with pytest.raises(Unavailable, match="the ledger lost its tail or was made anew"):
        delivered(*offsets).refuse_cut()
