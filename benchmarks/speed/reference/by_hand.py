"""Rules of the table in NumPy, written by hand from the papers: arrays in place where that saves one, numbers in Python's own.

Each has `decide`, and `update` with the data of a round in the order of the model's streams.
"""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray


class Simplex:
    """Mirror descent with entropy (Wei, Yu & Neely 2020) on simplex.oco: x (1000,), linear cost, one linear constraint on average."""

    def __init__(self, T: float) -> None:
        self.x, self.Q, self.T = np.full(1000, 1e-3), 0.0, T

    def decide(self) -> Array:
        return self.x

    def update(self, cost: Array, weight: Array) -> None:
        power = cost * (-1 / math.sqrt(self.T))
        power -= weight * (self.Q / self.T)
        power -= power.max()
        self.x = mirrored(self.x, power, self.T)
        self.Q = max(self.Q + float(weight @ self.x) - 0.5, 0.0)


class Portfolio:
    """Mirror descent as in `Simplex` on examples/portfolio.oco: x (30,), loss -log(relative @ x), one linear constraint on average."""

    def __init__(self, T: float) -> None:
        self.x, self.Q, self.T, self.level = np.full(30, 1 / 30), 0.0, T, np.repeat([1 / 3, 2 / 3, 1.0], 10)

    def decide(self) -> Array:
        return self.x

    def update(self, relative: Array, shock: Array) -> None:
        exposure = self.level * shock
        power = relative * (1 / (math.sqrt(self.T) * float(relative @ self.x)))
        power -= exposure * (self.Q / self.T)
        power -= power.max()
        self.x = mirrored(self.x, power, self.T)
        self.Q = max(self.Q + float(exposure @ self.x) - 0.5, 0.0)


def mirrored(x: Array, power: Array, T: float) -> Array:
    """Weights in proportion to (x, mixed with the uniform point by 1/T) times e^power, which is written over."""
    following = np.exp(power, out=power)
    following *= x * (1 - 1 / T) + 1 / (T * len(x))
    following *= 1 / following.sum()
    return following


class Capped:
    """Mirror descent with the Euclidean distance on capped.oco: x (500,) of sum 1 in [0, 0.01], three linear constraints on average."""

    def __init__(self, T: float) -> None:
        self.x, self.Q, self.T, self.shift = np.full(500, 0.002), np.zeros(3), T, 0.0

    def decide(self) -> Array:
        return self.x

    def update(self, cost: Array, use: Array) -> None:
        v = cost * (-1 / math.sqrt(self.T))
        v += self.x
        v -= (self.Q / self.T) @ use
        self.x = self.projected(v)
        self.Q = np.maximum(self.Q + use @ self.x - 0.5, 0.0)

    def projected(self, v: Array) -> Array:
        """clip(v - shift, 0, 0.01) of sum 1, by Newton's method from the last shift; bisection between where it leaves the bracket."""
        low, high, shift = float(v.min()) - 0.01, float(v.max()), self.shift
        for _ in range(100):
            moved = v - shift
            x = moved.clip(0.0, 0.01)
            over, free = float(x.sum()) - 1.0, np.count_nonzero(x == moved)
            if abs(over) <= 1e-15 * len(v) or not low < shift < high:
                break
            low, high = (shift, high) if over > 0 else (low, shift)
            newton = shift + over / free if free else math.inf
            shift = newton if low < newton < high else (low + high) / 2
        self.shift = shift
        return x


class Bandit:
    """Bandit gradient descent (Flaxman, Kalai & McMahan 2005) on bandit.oco: x (50,) in a ball, given the normal numbers of a round."""

    def __init__(self, T: float) -> None:
        self.y, self.delta, self.eta = np.zeros(50), 0.5, math.sqrt(2) / T

    def decide(self, u: Array) -> Array:
        self.way = u * (1 / math.sqrt(u @ u))
        return self.y + self.delta * self.way

    def update(self, loss: float) -> None:
        y = self.y - (self.eta * 50 / self.delta * loss) * self.way
        size, most = math.sqrt(y @ y), 1 - self.delta
        self.y = y if size <= most else y * (most / size)


class JobScheduling:
    """COLDQ (Weibel et al. 2026) on examples/job_scheduling.oco: x (100,) in [0, 1000], Newton's method on the one multiplier."""

    def __init__(self, T: float) -> None:
        self.x, self.Q, self.T, self.t, self.lam = np.full(100, 500.0), T / 2, T, 1, 0.0

    def decide(self) -> Array:
        return self.x

    def update(self, price: Array, jobs: float) -> None:
        T, y = self.T, self.x
        if self.t > 1:
            violation = max(jobs - 4 * float(np.log(1 + 4 * y).sum()), 0.0)
            self.Q = max((1 - 1 / T) * self.Q + violation, T / 2)
        scale = 2 * math.sqrt(min(self.t, T))
        self.x = self.step(price.repeat(10) - scale * (y + 0.25), scale, float(jobs))
        self.t += 1

    def step(self, p: Array, scale: float, jobs: float) -> Array:
        """Entries u = 1 + 4 x with scale u^2 / 4 + p u = 16 lam, at the lam in [0, Q] where the constraint holds or ends."""
        low, high, lam, squares = 0.0, self.Q, min(self.lam, self.Q), p * p
        rises = falls = False  # at low, at high
        for _ in range(100):
            q = np.sqrt(squares + 16 * lam * scale)
            root = np.where(p > 0, 32 * lam / np.maximum(p + q, 1e-290), 2 / scale * (q - p))
            u = root.clip(1.0, 4001.0)
            g = jobs - 4 * float(np.log(u).sum())
            if abs(g) <= 1e-12 * jobs or (g <= 0 and lam <= 0) or (g > 0 and lam >= self.Q):
                break
            low, high = (lam, high) if g > 0 else (low, lam)
            rises, falls = rises or g > 0, falls or g <= 0
            bend = float((256 / (scale * u * u + 64 * lam))[root == u].sum())
            newton = lam + g / bend if bend > 0 else (self.Q if g > 0 else 0.0)
            if newton >= high or newton <= low:
                ended = falls if newton >= high else rises
                newton = (low + high) / 2 if ended else (high if newton >= high else low)
            if abs(newton - lam) <= 1e-15 * newton:
                break
            lam = newton
        self.lam = lam
        return (u - 1) * 0.25


class Flow:
    """Perturbed leaders (Hazan & Minasyan 2020, OSPF) on benchmarks/speed/flow.oco: x (1312,), paths of a grid by its diagonals."""

    rows, columns, samples, block = 11, 63, 7, 252

    def __init__(self, T: float) -> None:
        self.blocks = T**0.4
        self.theta = 9618.69776020019335902577566 * self.blocks
        self.mu = 0.00010396417736897338318422658466 / (self.blocks * (math.ceil(self.blocks) + 1))
        self.S, self.price, self.over, self.k = np.zeros(1312), 0.0, 0.0, 1
        i, j = np.divmod(np.arange(self.rows * self.columns), self.columns)
        first = 2 * (i * self.columns + j) - i - np.where(i == self.rows - 1, j, 0)
        self.right = np.where(j < self.columns - 1, first, 1312)
        self.down = np.where(i < self.rows - 1, first + (j < self.columns - 1), 1312)
        self.diagonals = [np.flatnonzero(i + j == d) for d in range(self.rows + self.columns - 3, -1, -1)]
        self.x = np.array([])

    def begin(self, x: Array) -> None:
        """Take the first decision."""
        self.x = x

    def decide(self, u: Array, p: Array) -> Array:
        self.u, self.p = u, p
        return self.x

    def update(self, c: Array, w: Array) -> None:
        self.S = self.S + c + self.price * w
        self.over += float(w @ self.x) - 40
        if self.k % self.samples == 0:
            lengths = np.sqrt(np.einsum("ij,ij->i", self.u, self.u))
            scale = 5783.571070714212 * (1 + self.price) * self.p ** (1 / 1312) / lengths
            self.x = self.leader(self.S + scale[:, None] * self.u)
        if self.k == self.block:
            self.price = max((1 - self.theta * self.mu) * self.price + self.mu * self.over, 0.0)
            self.over, self.S, self.k = 0.0, np.zeros(1312), 0
        self.k += 1

    def leader(self, cost: Array) -> Array:
        """Mean of the shortest paths for rows of costs."""
        cost = np.append(cost, np.full((self.samples, 1), np.inf), axis=1)
        far = np.zeros((self.samples, len(self.right) + self.columns))
        goes_down = np.zeros((self.samples, len(self.right)), dtype=bool)
        for nodes in self.diagonals:
            on = cost[:, self.right[nodes]] + far[:, nodes + 1]
            below = cost[:, self.down[nodes]] + far[:, nodes + self.columns]
            far[:, nodes], goes_down[:, nodes] = np.minimum(on, below), below < on
        x, every = np.zeros(1313), np.arange(self.samples)
        node = np.zeros(self.samples, dtype=int)
        for _ in range(self.rows + self.columns - 2):
            falls = goes_down[every, node]
            np.add.at(x, np.where(falls, self.down[node], self.right[node]), 1 / self.samples)
            node = node + np.where(falls, self.columns, 1)
        return x[:1312]
