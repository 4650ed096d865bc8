"""Baselines: stores built from documents alone, and the oracle that bounds them.

`ARMS` lists them by name; `build_arm` builds one for a world; `engine_for_arm` returns its search engine.
"""

from kbgym.baselines.arm import Arm, Built
from kbgym.baselines.registry import ARMS, arm_named, build_arm, engine_for_arm

__all__ = ["ARMS", "Arm", "Built", "arm_named", "build_arm", "engine_for_arm"]
