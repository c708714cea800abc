"""The view of a round for an update rule: points, gradients, constraints and settings as traced values."""
