"""Domains, one file each: the sets that decisions lie in."""

from oco.compiler.domains.base import Domain
from oco.compiler.domains.make import KINDS, domain, make_domain

__all__ = ["KINDS", "Domain", "domain", "make_domain"]
