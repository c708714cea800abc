"""Part of a plan that differentiates its runs in its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oco.dsl.calls import checked_call

if TYPE_CHECKING:
    from oco.backends.gradients import SettingsLoss


class Differentiable:
    """Part of a plan with the losses of its runs as functions of its free settings."""

    @checked_call
    def loss_of_settings(
        self,
        data: Any = None,
        rounds: int | None = None,
        seed: int = 0,
        price: float = 0.0,
        backend: str | None = None,
    ) -> SettingsLoss:
        """Total loss of a run over data, and `price` times its violations, as a function of the settings that the theorem leaves free.

        The result takes a dict of numbers by name, as `oco tune` has them: factors of the paper's formulas, or values. It is a function of
        JAX, for `jax.grad`, `jax.vmap` and `jax.jit`; its `settings` are where the plan has them, and `value_and_slopes` gives floats.

        price  of a unit of violation, in the model's units: of [g]_+ round by round, or of the excess on average
        seed   as for `run`

        Raises OCO711 where no constant is free, OCO874 where runs of the plan are not differentiated, OCO911 without JAX, which the extra
        `jax` installs.
        """
        from oco.gradients import loss_of_settings

        return loss_of_settings(self, data, rounds, seed, price, backend)
