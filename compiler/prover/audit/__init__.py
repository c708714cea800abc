"""Derivations replayed and claims attacked, without the provers that made them."""
