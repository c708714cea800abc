"""Operations whose derivatives stay finite where JAX's own make NaN of zero times infinity.

Steps floor a divisor at 1e-290 and take the other side of a branch, or measure a length that is zero. What is not chosen must not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

Function = Callable[..., Any]


def _derived(value: Function, slope: Function) -> Function:
    """Function of arrays with the derivative slope(arguments, their tangents, value)."""

    def derivative(primals: Any, tangents: Any) -> Any:
        result = value(*primals)
        return result, jnp.broadcast_to(slope(primals, tangents, result), jnp.shape(result))

    made = jax.custom_jvp(value)
    made.defjvp(derivative)
    function: Function = made
    return function


def _slope_of_ratio(arguments: Any, tangents: Any, result: Any) -> Any:
    """Slope (da - (a / b) db) / b, which takes no square of b."""
    da, db = tangents
    return (da - jnp.where(db == 0, 0.0, result * db)) / arguments[1]


def _slope_of_root(arguments: Any, tangents: Any, result: Any) -> Any:
    """Slope of the square root; zero at zero, which is a subgradient of norms."""
    return jnp.where(result == 0, 0.0, tangents[0] / (2.0 * result))


def _choice(chosen: Function, first: Function) -> Function:
    """Choice between two numbers with the derivative of the chosen one; of equals the mean."""

    def slope(arguments: Any, tangents: Any, result: Any) -> Any:
        (a, b), (da, db) = arguments, tangents
        return jnp.where(a == b, 0.5 * (da + db), jnp.where(first(a, b), da, db))

    return _derived(chosen, slope)


ratio = _derived(lambda a, b: a / b, _slope_of_ratio)
root = _derived(jnp.sqrt, _slope_of_root)
larger = _choice(jnp.maximum, lambda a, b: a > b)
smaller = _choice(jnp.minimum, lambda a, b: a < b)


def largest(x: Any, axis: int | None = None) -> Any:
    """Largest entry, of all or along an axis, with the mean derivative of the entries that are it."""
    return _extreme(jnp.max, axis)(x)


def smallest(x: Any, axis: int | None = None) -> Any:
    """Smallest entry, of all or along an axis, with the mean derivative of the entries that are it."""
    return _extreme(jnp.min, axis)(x)


@cache
def _extreme(extreme: Function, axis: int | None) -> Function:
    def slope(arguments: Any, tangents: Any, result: Any) -> Any:
        among = arguments[0] == extreme(arguments[0], axis=axis, keepdims=True)
        return jnp.where(among, tangents[0], 0.0).sum(axis=axis) / jnp.maximum(among.sum(axis=axis), 1)

    return _derived(lambda x: extreme(x, axis=axis), slope)
