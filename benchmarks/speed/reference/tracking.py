"""COLDQ on examples/tracking.oco in NumPy, written by hand: the rule of tracking.c. Arrays hold the ten variables; what concerns the two
multipliers is in Python's own numbers, which cost less than arrays of two."""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray


class Tracking:
    """x (10,) in [0, 5], loss |H x - H 1 - noise|^2 / 2, constraints A x <= b; `update` takes a round and gives the next decision."""

    def __init__(self, T: float) -> None:
        self.T, self.t = T, 1
        self.x, self.Q = np.full(10, 2.5), [T / 2, T / 2]

    def decide(self) -> Array:
        return self.x

    def update(self, H: Array, noise: Array, A: Array, b: Array) -> Array:
        y = self.x
        c = (H @ (y - 1.0) - noise) @ H
        g = (A @ y - b).tolist()
        if self.t > 1:
            self.Q = [max((1 - 1 / self.T) * q + max(v, 0.0), self.T / 2) for q, v in zip(self.Q, g)]
        self.x = self.step(y, c, A, math.sqrt(min(self.t, self.T)), g)
        self.t += 1
        return self.x

    def step(self, y: Array, c: Array, A: Array, alpha: float, g: list[float]) -> Array:
        """argmin <c, x - y> + alpha |x - y|^2 + sum Q [g + A (x - y)]_+ by Newton's method on the multipliers that no bound holds."""
        Q, lam, scale = self.Q, [0.0, 0.0], 2 * alpha
        free = y - c / scale
        steps = A / scale
        u, x = free, free.clip(0.0, 5.0)
        move = x - y
        value = self.values(A, move, g)
        for _ in range(100):
            way = self.newton(A, u, x, lam, value, scale)
            gain = way[0] * value[0] + way[1] * value[1]
            if not gain > alpha * 2.5e-22:
                break
            rooms = [-v if w < 0 else q - v for v, w, q in zip(lam, way, Q)]
            share = min([1.0, *(r / w for r, w in zip(rooms, way) if w)])
            before = self.dual(c, alpha, lam, move, value)
            for _ in range(60):
                tried = [min(max(v + share * w, 0.0), q) for v, w, q in zip(lam, way, Q)]
                tried = [0.0 if v < 1e-14 * q else v for v, q in zip(tried, Q)]
                u = free - np.array(tried) @ steps
                x = u.clip(0.0, 5.0)
                move = x - y
                value = self.values(A, move, g)
                if self.dual(c, alpha, tried, move, value) >= before - 1e-13 * abs(before):
                    break
                share /= 2
            lam = tried
        return x

    def newton(
        self, A: Array, u: Array, x: Array, lam: list[float], value: list[float], scale: float
    ) -> tuple[float, float]:
        """The step of the multipliers, by the formula for two equations; one that would leave its bound stays."""
        Q = self.Q
        first, second = (not ((v <= 0 and f <= 0) or (v >= q and f >= 0)) for v, f, q in zip(lam, value, Q))
        if not (first or second):
            return 0.0, 0.0
        (k00, k01), (_, k11) = ((A * (u == x)) @ A.T).tolist()
        k00, k11 = k00 + 1e-290, k11 + 1e-290
        det, (a, b) = k00 * k11 - k01 * k01, value
        alone = scale * a / k00 if first else 0.0, scale * b / k11 if second else 0.0
        if not (first and second and det > 1e-14 * k00 * k11):
            return (alone[0], 0.0) if alone[0] * a >= alone[1] * b else (0.0, alone[1])
        one, two = scale * (k11 * a - k01 * b) / det, scale * (k00 * b - k01 * a) / det
        if (lam[0] <= 0 and one < 0) or (lam[0] >= Q[0] and one > 0):
            return 0.0, alone[1]
        if (lam[1] <= 0 and two < 0) or (lam[1] >= Q[1] and two > 0):
            return alone[0], 0.0
        return one, two

    def values(self, A: Array, move: Array, g: list[float]) -> list[float]:
        a, b = (A @ move).tolist()
        return [g[0] + a, g[1] + b]

    def dual(self, c: Array, alpha: float, lam: list[float], move: Array, value: list[float]) -> float:
        return float((c + alpha * move) @ move) + lam[0] * value[0] + lam[1] * value[1]
