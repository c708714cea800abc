"""COLDQ on examples/tracking.oco in NumPy, written by hand: the rule of tracking.c, arrays where they pay."""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray


class Tracking:
    """x (10,) in [0, 5], loss |H x - H 1 - noise|^2 / 2, constraints A x <= b; `update` takes a round and gives the next decision."""

    def __init__(self, T: float) -> None:
        self.T, self.t = T, 1
        self.x, self.Q = np.full(10, 2.5), np.full(2, T / 2)

    def update(self, H: Array, noise: Array, A: Array, b: Array) -> Array:
        y = self.x
        c = H.T @ (H @ (y - 1.0) - noise)
        g = A @ y - b
        if self.t > 1:
            self.Q = np.maximum((1 - 1 / self.T) * self.Q + np.maximum(g, 0.0), self.T / 2)
        self.x = self.step(y, c, A, math.sqrt(min(self.t, self.T)), g)
        self.t += 1
        return self.x

    def step(self, y: Array, c: Array, A: Array, alpha: float, g: Array) -> Array:
        """argmin <c, x - y> + alpha |x - y|^2 + sum Q [g + A (x - y)]_+ by Newton's method on the multipliers that no bound holds."""
        scale, lam, Q = 2 * alpha, np.zeros(2), self.Q
        u, x, value = self.respond(y, c, A, scale, lam, g)
        for _ in range(100):
            free = ~(((lam <= 0) & (value <= 0)) | ((lam >= Q) & (value >= 0)))
            inside = A * ((u > 0) & (u < 5))
            move = self.newton(inside @ A.T, A, free, lam, value * scale)
            gain = move @ value
            if not gain > alpha * 2.5e-22:
                break
            room = np.where(move < 0, -lam, Q - lam)
            share = min(1.0, min((r / m for r, m in zip(room, move) if m), default=1.0))
            before = self.dual(y, c, alpha, lam, x, value)
            for _ in range(60):
                tried = np.clip(lam + share * move, 0.0, Q)
                tried[tried < 1e-14 * Q] = 0.0
                u, x, value = self.respond(y, c, A, scale, tried, g)
                if self.dual(y, c, alpha, tried, x, value) >= before - 1e-13 * abs(before):
                    break
                share /= 2
            lam = tried
        return x

    def newton(self, K: Array, A: Array, free: Array, lam: Array, right: Array) -> Array:
        move = np.zeros(2)
        while free.any():
            places = np.flatnonzero(free)
            ridge = np.diag(1e-13 * np.einsum("ij,ij->i", A, A)[places] + 1e-290)
            found = np.linalg.solve(K[np.ix_(places, places)] + ridge, right[places])
            leaves = ((lam[places] <= 0) & (found < 0)) | ((lam[places] >= self.Q[places]) & (found > 0))
            move[:] = 0.0
            if not leaves.any():
                move[places] = found
                break
            free = free.copy()
            free[places[leaves]] = False
        return move

    def respond(self, y: Array, c: Array, A: Array, scale: float, lam: Array, g: Array) -> tuple[Array, Array, Array]:
        u = y - (c + lam @ A) / scale
        x = np.minimum(np.maximum(u, 0.0), 5.0)
        return u, x, g + A @ (x - y)

    def dual(self, y: Array, c: Array, alpha: float, lam: Array, x: Array, value: Array) -> float:
        move = x - y
        return c @ move + alpha * (move @ move) + lam @ value
