"""The choice of an algorithm, its settings, and the plan that they make."""
