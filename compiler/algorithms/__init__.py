"""The algorithms, one file a paper. `ALGORITHMS` lists them."""

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import OEG, OGD
from oco.compiler.algorithms.guo2022 import RECOO
from oco.compiler.algorithms.hazan2016 import OFW
from oco.compiler.algorithms.qiu_wei2020 import MIRROR_PROX
from oco.compiler.algorithms.sinha_vaze2024 import SINHA_VAZE
from oco.compiler.algorithms.wang_wan_zhang2025 import OFW_TVC
from oco.compiler.algorithms.wang_yan_liu2025 import COLDQ
from oco.compiler.algorithms.wang_yan_liu2025_expert import COLDQ_EXPERT
from oco.compiler.algorithms.wei2020 import MIRROR_DESCENT

ALGORITHMS: tuple[Algorithm, ...] = (COLDQ, COLDQ_EXPERT, MIRROR_DESCENT, MIRROR_PROX, OFW_TVC, OGD, OEG, OFW, RECOO, SINHA_VAZE)

__all__ = ["ALGORITHMS", "Algorithm"]
