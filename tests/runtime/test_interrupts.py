"""Deferred interrupts: the block finishes before KeyboardInterrupt is raised."""

import signal
import threading

import pytest

from kernelmill.runtime.interrupts import defer_interrupts

pytestmark = pytest.mark.representative


def test_the_block_is_finished_first():
    done = []

    def work():
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]


def test_the_handler_is_as_before():
    before = signal.getsignal(signal.SIGINT)
    with defer_interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_the_outermost_of_nested_blocks_counts():
    done = []

    def work():
        with defer_interrupts():
            with defer_interrupts():
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]


def test_errors_of_the_block_pass_and_the_handler_is_restored():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), defer_interrupts():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_custom_handlers_are_called_at_the_end():
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append("handler"))
    try:
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            calls.append("block")
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == ["block", "handler"]


def test_ignored_interrupts_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_defer_nothing():
    handlers = []

    def work():
        with defer_interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
