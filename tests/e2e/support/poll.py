"""Waiting for something that will happen soon: bounded, and without guessing how long it takes."""

import time


def until(condition, what, seconds=5.0, every=0.01):
    """The first true value of `condition()`; fails after `seconds`, naming `what`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {seconds} s in vain for: {what}")
        time.sleep(every)


def room_in_window(window, seconds):
    """Returns at an instant with at least `seconds` left in the aligned window of this length."""
    left = window - time.time() % window
    if left < seconds:
        time.sleep(left + 0.01)


def sleep_until(instant):
    """Returns at this instant of the wall clock, or at once if it is over."""
    while (left := instant - time.time()) > 0:
        time.sleep(left)
