"""Leaves out of a failing script whatever it fails without: halves first, then single steps.

Walk: `run` shrinks the first script of each kind of failure.
"""

from collections.abc import Callable

from tests.differential.transactions.steps import Step

ATTEMPTS_MAX = 150


def shrunk(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    attempts = 0
    size = max(1, len(steps) // 2)
    while True:
        start, is_smaller = 0, False
        while start < len(steps) and attempts < ATTEMPTS_MAX:
            attempts += 1
            trial = steps[:start] + steps[start + size :]
            if trial and fails(trial):
                steps, is_smaller = trial, True
            else:
                start += size
        if attempts >= ATTEMPTS_MAX or (size == 1 and not is_smaller):
            return steps
        size = max(1, size // 2)
