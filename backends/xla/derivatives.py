"""Operations whose derivatives stay finite where JAX's own make NaN of zero times infinity.

Steps floor a divisor at 1e-290 and take the other side of a branch, or measure a length that is zero. What is not chosen must not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp


@jax.custom_jvp
def ratio(a: Any, b: Any) -> Any:
    """Quotient a / b, whose derivative (da - (a / b) db) / b takes no square of b."""
    return a / b


@ratio.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (a, b), (da, db) = primals, tangents
    result = a / b
    return result, jnp.broadcast_to((da - jnp.where(db == 0, 0.0, result * db)) / b, jnp.shape(result))


@jax.custom_jvp
def root(x: Any) -> Any:
    """Square root, with the derivative zero at zero, where norms have that subgradient."""
    return jnp.sqrt(x)


@root.defjvp
def _(primals: Any, tangents: Any) -> Any:
    result = jnp.sqrt(primals[0])
    return result, jnp.where(result == 0, 0.0, tangents[0] / (2.0 * result))


def _choice(chosen: Callable[[Any, Any], Any], first: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Choice between two numbers with the derivative of the chosen one; of equals the mean."""

    @jax.custom_jvp
    def choose(a: Any, b: Any) -> Any:
        return chosen(a, b)

    @choose.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (a, b), (da, db) = primals, tangents
        result = chosen(a, b)
        slope = jnp.where(a == b, 0.5 * (da + db), jnp.where(first(a, b), da, db))
        return result, jnp.broadcast_to(slope, jnp.shape(result))

    return choose


larger = _choice(jnp.maximum, lambda a, b: a > b)
smaller = _choice(jnp.minimum, lambda a, b: a < b)


def largest(x: Any, axis: int | None = None) -> Any:
    """Largest entry, of all or along an axis, with the mean derivative of the entries that are it."""
    return _extreme(jnp.max, axis)(x)


def smallest(x: Any, axis: int | None = None) -> Any:
    """Smallest entry, of all or along an axis, with the mean derivative of the entries that are it."""
    return _extreme(jnp.min, axis)(x)


@cache
def _extreme(extreme: Callable[..., Any], axis: int | None) -> Callable[[Any], Any]:
    @jax.custom_jvp
    def take(x: Any) -> Any:
        return extreme(x, axis=axis)

    @take.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        among = x == extreme(x, axis=axis, keepdims=True)
        slope = jnp.where(among, dx, 0.0).sum(axis=axis) / jnp.maximum(among.sum(axis=axis), 1)
        return extreme(x, axis=axis), slope

    return take
