"""Stores prepared without supervision, each from documents alone, and the oracle that bounds them.

`ARMS` names them; `build_arm` builds one for a world; `engine_for_arm` searches it.
"""

from kbgym.baselines.arm import Arm, Built
from kbgym.baselines.registry import ARMS, arm_named, build_arm, engine_for_arm

__all__ = ["ARMS", "Arm", "Built", "arm_named", "build_arm", "engine_for_arm"]
