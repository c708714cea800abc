"""Domains, one file each: the sets that decisions lie in."""

from oco.compiler.domains.affine import in_units, shifted_and_scaled
from oco.compiler.domains.base import Domain
from oco.compiler.domains.cut import cut
from oco.compiler.domains.make import domain, make_domain
from oco.compiler.domains.product import product

__all__ = ["Domain", "cut", "domain", "in_units", "make_domain", "product", "shifted_and_scaled"]
