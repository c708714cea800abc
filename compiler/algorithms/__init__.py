"""The algorithms, one file a paper. `ALGORITHMS` lists them."""

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import OEG, OGD
from oco.compiler.algorithms.wang_wan_zhang2025 import OFW_TVC
from oco.compiler.algorithms.wang_yan_liu2025 import COLDQ
from oco.compiler.algorithms.wang_yan_liu2025_expert import COLDQ_EXPERT
from oco.compiler.algorithms.wei2020 import MIRROR_DESCENT

ALGORITHMS: tuple[Algorithm, ...] = (COLDQ, COLDQ_EXPERT, MIRROR_DESCENT, OFW_TVC, OGD, OEG)

__all__ = ["ALGORITHMS", "Algorithm"]
