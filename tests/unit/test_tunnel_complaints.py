"""What the log says of refused connections: not too much, and nothing that a peer made up."""

import asyncio

import pytest

from barnabas.tunnel.complaints import LINES, Complaints, printable
from barnabas.tunnel.metrics import Meter
from barnabas.tunnel.refusals import Reason


def test_a_flood_of_one_reason_is_ten_lines_and_a_number_and_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> Meter:
        meter = Meter("eu", "serve")
        complaints = Complaints("eu", meter, "refused")
        for number in range(1000):
            complaints.refused(f"192.0.2.1:{number}", Reason.NOT_TLS, "garbage")
        complaints.refused("192.0.2.9:1", Reason.TARGET, "not listed")
        complaints.stop()
        complaints.refused("192.0.2.1:7", Reason.NOT_TLS, "garbage again")
        return meter

    meter = asyncio.run(scene())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == LINES + 4
    assert 'tunnel "eu": refused 192.0.2.9:1: target_not_listed (not listed)' in lines
    assert f'tunnel "eu": refused {1000 - LINES} more in 60 s: not_tls' in lines
    assert lines[-1].endswith("(garbage again)")
    assert meter.value("refused_total", reason=Reason.NOT_TLS) == 1001


def test_what_a_peer_wrote_is_one_line_without_escapes() -> None:
    assert printable('a\nb\x1b[31mc\u202ed\ud800 é"') == 'a\\nb\\x1b[31mc\\u202ed\\ud800 é"'
