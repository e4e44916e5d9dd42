"""Functions that kernels call: arithmetic of 64 bits, order, and passes over the live groups.

Kernels include the text of these functions and are compiled together with them, so a function uses
numbers, arrays and other functions of kernels only. Live groups are a list: ``head`` is the first,
``following[group]`` the next, -1 the end.

Compiled code must not add integers with ``+`` where the sum may exceed 64 bits: numba lets LLVM
assume that it does not. Unsigned integers wrap in compiled code, but numpy does not turn a large
one into a signed one. So the functions that wrap have a form for each, of which ``jit.py`` takes
that whose name begins with ``compiled_``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def wrap_add(a: Any, b: Any) -> Any:
    """Return a + b in 64 bits."""
    return np.int64(a) + b


def compiled_wrap_add(a: Any, b: Any) -> Any:
    """Return a + b in 64 bits."""
    return np.int64(np.uint64(a) + np.uint64(b))


def wrap_sub(a: Any, b: Any) -> Any:
    """Return a - b in 64 bits."""
    return np.int64(a) - b


def compiled_wrap_sub(a: Any, b: Any) -> Any:
    """Return a - b in 64 bits."""
    return np.int64(np.uint64(a) - np.uint64(b))


def wrap_mul(a: Any, b: Any) -> Any:
    """Return a * b in 64 bits."""
    return np.int64(a) * b


def compiled_wrap_mul(a: Any, b: Any) -> Any:
    """Return a * b in 64 bits."""
    return np.int64(np.uint64(a) * np.uint64(b))


def wrap_abs(a: Any) -> Any:
    """Return the absolute value; that of the least integer wraps."""
    return wrap_sub(0, a) if a < 0 else a


def quotient(a: Any, b: Any) -> Any:
    """Return a / b, rounded to zero; b is not 0, and the least integer over -1 wraps."""
    if b == -1:
        return wrap_sub(0, a)
    result = a // b
    if result < 0 and result * b != a:
        result += 1
    return result


def remainder(a: Any, b: Any) -> Any:
    """Return what division of a by b, which is not 0, leaves; it has the sign of a."""
    if b == -1:
        return wrap_sub(a, a)
    return a - quotient(a, b) * b


def less(a: Any, b: Any) -> bool:
    """Return whether a < b; NaN is greater than all numbers."""
    return bool(a < b or (b != b and a == a))


def carried(before: int, x: int, after: int) -> int:
    """Return how often before + x has exceeded 64 bits, given its wrapped sum: -1, 0 or 1."""
    if x >= 0:
        return 1 if after < before else 0
    return -1 if after > before else 0


def sum_of_groups(head: int, following: Any, parts: Any) -> float:
    """Return the sum of the parts of all live groups, in their order."""
    total = 0.0
    group = head
    while group >= 0:
        total += parts[group]
        group = following[group]
    return total


def kth_insert(smallest: Any, held: int, x: Any) -> int:
    """Insert x among the ``held`` smallest different values, and return how many are held then."""
    low = 0
    high = held
    while low < high:
        middle = (low + high) // 2
        if smallest[middle] < x:
            low = middle + 1
        else:
            high = middle
    if low == len(smallest) or (low < held and smallest[low] == x):
        return held
    place = held if held < len(smallest) else len(smallest) - 1
    smallest[low + 1 : place + 1] = smallest[low:place].copy()
    smallest[low] = x
    return held + 1 if held < len(smallest) else held


def kth_refill(
    smallest: Any, head: int, following: Any, first: Any, values: Any, valid: Any
) -> int:
    """Fill ``smallest`` with the values of live groups except NaN, and return how many it holds."""
    held = 0
    group = head
    while group >= 0:
        row = first[group]
        if valid[row] and values[row] == values[row]:
            held = kth_insert(smallest, held, values[row])
        group = following[group]
    return held


def extreme_group(head: int, following: Any, values: Any, valid: Any, sign: int) -> int:
    """Return the live group with the greatest value (sign 1) or the least (-1); -1 without one."""
    found = -1
    group = head
    while group >= 0:
        if valid[group] and (
            found < 0
            or (sign > 0 and less(values[found], values[group]))
            or (sign < 0 and less(values[group], values[found]))
        ):
            found = group
        group = following[group]
    return found
