"""The algorithms, one file a paper. `ALGORITHMS` lists them."""

from oco.compiler.algorithms.agarwal2010 import TWO_POINT
from oco.compiler.algorithms.balseiro_lu_mirrokni2023 import PACING
from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import OEG, OGD
from oco.compiler.algorithms.double_queues import DOUBLE_QUEUES
from oco.compiler.algorithms.ferreira2026 import CLASP
from oco.compiler.algorithms.flaxman2005 import BGD
from oco.compiler.algorithms.guo2022 import RECOO
from oco.compiler.algorithms.hazan_agarwal_kale2007 import ONS
from oco.compiler.algorithms.hedged import HEDGED
from oco.compiler.algorithms.hutchinson_alizadeh2025 import PFS
from oco.compiler.algorithms.jenatton2016 import JENATTON
from oco.compiler.algorithms.lee2023 import PROJECTION_FREE
from oco.compiler.algorithms.lee2023_meta import META_FRANK_WOLFE
from oco.compiler.algorithms.mahdavi2012 import MAHDAVI
from oco.compiler.algorithms.qiu_wei2020 import MIRROR_PROX
from oco.compiler.algorithms.rakhlin_sridharan2013 import OPTIMISTIC
from oco.compiler.algorithms.response_surface import RESPONSE_SURFACE
from oco.compiler.algorithms.sinha_vaze2024 import SINHA_VAZE
from oco.compiler.algorithms.supantha_sinha2026 import DISTANCE_PENALTY
from oco.compiler.algorithms.vaze_sinha2025 import NESTED
from oco.compiler.algorithms.wang_wan_zhang2025 import OFW_TVC, SCOFW_TVC
from oco.compiler.algorithms.wang_wan_zhang2025_bandit import BFW_TVC, SCBFW_TVC
from oco.compiler.algorithms.wang_yan_liu2025 import COLDQ
from oco.compiler.algorithms.wang_yan_liu2025_expert import COLDQ_EXPERT
from oco.compiler.algorithms.wei2020 import MIRROR_DESCENT
from oco.compiler.algorithms.weibel2026 import OFW
from oco.compiler.algorithms.yu_neely2020 import YU_NEELY
from oco.compiler.algorithms.yu_neely_wei2017 import DPP
from oco.compiler.algorithms.zimmert_seldin2021 import TSALLIS_INF

ALGORITHMS: tuple[Algorithm, ...] = (
    COLDQ,
    COLDQ_EXPERT,
    MIRROR_DESCENT,
    MIRROR_PROX,
    PROJECTION_FREE,
    META_FRANK_WOLFE,
    OFW_TVC,
    SCOFW_TVC,
    BFW_TVC,
    SCBFW_TVC,
    BGD,
    TSALLIS_INF,
    RESPONSE_SURFACE,
    TWO_POINT,
    OGD,
    OEG,
    ONS,
    OPTIMISTIC,
    OFW,
    DPP,
    YU_NEELY,
    MAHDAVI,
    JENATTON,
    RECOO,
    SINHA_VAZE,
    DOUBLE_QUEUES,
    DISTANCE_PENALTY,
    CLASP,
    PFS,
    NESTED,
    PACING,
    HEDGED,
)

LEFT_OUT: dict[str, str] = {
    "yi2021": "Yi et al. 2021: no source that states the rule was found",
    "yi2023": "Yi et al. 2023: no source that states the rule was found",
    "lpm": "Garber & Kretzu 2024, Algorithm 4: no source that states the rule was found",
    "lbpm": "Garber & Kretzu 2024, Algorithm 5: no source that states the rule was found",
}
"""Methods that others compare with and that are not here, each with the reason: a rule that nobody could confirm is never guessed."""

__all__ = ["ALGORITHMS", "LEFT_OUT", "Algorithm"]
