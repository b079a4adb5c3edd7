"""A breaker opens after failures in a row, lets one caller try when its time is over, and closes on success."""

import pytest

from barnabas.errors import Unavailable
from barnabas.schemas.breaker import Breaker


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def breaker(time: Time) -> Breaker:
    return Breaker("registry of grape: register", failures=3, seconds=10.0, clock=time)


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.enter()
        breaker.failed("refused")


def test_it_stays_closed_below_the_limit_and_a_success_starts_the_count_anew(breaker: Breaker) -> None:
    fail(breaker, 2)
    breaker.enter()
    breaker.succeeded()
    fail(breaker, 2)
    assert breaker.snapshot().state == "closed"
    assert breaker.snapshot().failures == 2
    breaker.enter()


def test_at_the_limit_it_opens_and_says_what_failed_and_for_how_long(breaker: Breaker, time: Time) -> None:
    fail(breaker, 3)
    time.now = 4.0
    assert breaker.snapshot().state == "open"
    with pytest.raises(Unavailable) as error:
        breaker.enter()
    assert str(error.value) == (
        "registry of grape: register: failed 3 times in a row, last with: refused; asked again in 6 s, "
        "and until it answers the records wait"
    )


def test_when_its_time_is_over_exactly_one_caller_may_try(breaker: Breaker, time: Time) -> None:
    fail(breaker, 3)
    time.now = 9.99
    with pytest.raises(Unavailable):
        breaker.enter()
    time.now = 10.0
    assert breaker.snapshot().state == "half-open"
    breaker.enter()
    with pytest.raises(Unavailable, match="another call is trying it now"):
        breaker.enter()
    breaker.succeeded()
    assert breaker.snapshot().state == "closed"
    assert breaker.snapshot().failures == 0
    breaker.enter()


def test_a_failed_try_opens_it_again_for_the_whole_time(breaker: Breaker, time: Time) -> None:
    fail(breaker, 3)
    time.now = 12.0
    fail(breaker, 1)
    assert breaker.snapshot().opened == 2
    time.now = 21.9
    assert breaker.snapshot().state == "open"
    time.now = 22.0
    assert breaker.snapshot().state == "half-open"
    assert breaker.snapshot().last_error == "refused"


def test_a_straggler_that_fails_while_it_is_open_does_not_prolong_it(breaker: Breaker, time: Time) -> None:
    fail(breaker, 2)
    breaker.enter()
    breaker.enter()
    breaker.failed("refused")
    time.now = 5.0
    breaker.failed("late")
    time.now = 10.0
    assert breaker.snapshot().state == "half-open"
    assert breaker.snapshot().opened == 1
