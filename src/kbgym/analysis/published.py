"""The paper's figures, to stand beside ours: gpt-5-mini as reader and curator, one seed, 200 iterations.

None of them was made here; they are quoted so that a reader can compare.
"""

from __future__ import annotations

# The kind of world these figures are of, and that of the other benchmark, whose figures have its name.
KIND, OTHER = "people", "phantomwiki"

NOTE = "The paper's rows are gpt-5-mini's (reader and curator), one seed, n = 34 a group."

NAMES = {"flat": "B1 flat", "graphrag": "B2 GraphRAG", "hipporag": "B3 HippoRAG2", "trained-paper": "trained"}

RHO: dict[str, dict[str, float]] = {
    "graphrag": {"trained": 0.918, "both": 1.154, "one": 0.972, "neither": 1.047},
    "trained-paper": {"trained": 0.747, "both": 0.879, "one": 0.977, "neither": 1.016},
}
F1: dict[str, dict[str, float]] = {
    "flat": {"trained": 0.618, "both": 0.765, "one": 0.647, "neither": 0.794, "pooled": 0.706},
    "graphrag": {"trained": 0.618, "both": 0.676, "one": 0.706, "neither": 0.706},
    "hipporag": {"pooled": 0.919},
    "trained-paper": {"trained": 0.912, "both": 0.941, "one": 0.706, "neither": 0.765, "pooled": 0.831},
}
ACTIONS: dict[str, dict[str, float]] = {
    "flat": {"pooled": 9.8},
    "hipporag": {"pooled": 7.5},
    "trained-paper": {"trained": 8.0, "pooled": 8.9},
}
# coverage, actions saved a point, F1 gained a point
PER_POINT: dict[str, tuple[float, float | None, float | None]] = {
    "flat": (0.0, None, None),
    "graphrag": (1.0, -0.002, -0.0003),
    "hipporag": (1.0, 0.023, 0.0021),
    "trained-paper": (0.276, 0.035, 0.0045),
}
# direct, two hops, confirmed, questions
READINGS = {"trained-paper": (0.276, 0.276, 0.273, 0.258)}
LINKS = {"flat": 0, "hipporag": 196_112, "trained-paper": 1_913}
TOKENS = {"graphrag": 488_000, "trained-paper": 18_800_000}
# F1 of flat and of the trained store where flat ran out of budget
OUT_OF_BUDGET = {"trained": (0.08, 0.77), "both": (0.12, 0.88), "one": (0.14, 0.50), "neither": (0.12, 0.25)}
PHANTOMWIKI_RHO = {"trained": 0.769, "one": 0.914, "neither": 1.029}
PHANTOMWIKI_F1 = {"trained": 0.880, "one": 0.807, "neither": 0.718}
# forward F1 of the same questions in epoch 1 and epoch 2
RETENTION = {
    "QC1": (1.0, 1.0),
    "QC2": (1.0, 1.0),
    "QC3": (1.0, 1.0),
    "QC4": (0.33, 1.0),
    "QC5": (0.0, 0.25),
    "QC6": (0.33, 0.92),
    "QC7": (0.67, 0.83),
    "QC8": (0.42, 0.58),
    "QC9": (1.0, 1.0),
    "QC10": (0.20, 0.60),
    "all": (0.63, 0.82),
}
RETENTION_STEPS = (8.4, 7.4)
RETENTION_EXHAUSTED = (15, 8)
# questions within budget in both epochs, then F1 and steps in each
RETENTION_WITHIN = (83, (0.759, 0.892), (7.16, 6.37))
# actions and F1 of a group on the stores at the end of epoch 1 and 2, as far as the text gives them
LEARNING: dict[str, dict[int, tuple[float | None, float]]] = {
    "trained": {1: (8.59, 0.765), 2: (8.00, 0.912)},
    "both": {1: (None, 0.853), 2: (None, 0.941)},
}
# F1 on the eval split before training and after each epoch, of trained and of reserved templates
EVAL = {"in": (0.75, 0.80, 0.80), "out": (1.00, 0.90, 0.90)}
MARGIN = 0.03
RATIOS = {"actions": 1.5, "f1": 2.1}  # what a point of coverage buys, over what it buys B3
# n, degree, precision, recall
QUALITY = {
    "city": (8, 26.4, 0.98, 0.95),
    "job or hobby": (54, 12.7, 0.98, 0.96),
    "person": (91, 8.0, 0.95, 0.90),
    "two-hop relation": (10, 3.9, 0.87, 0.55),
    "one-hop relation": (54, 3.4, 0.78, 0.73),
    "all": (220, 8.5, 0.94, 0.91),
}
AUDIT = {
    "authored": 287,
    "genuine": 242,
    "stub": 43,
    "materialised": 2,
    "links": 1_913,
    "index to index": 100,
    "source to source": 17,
    "median out-degree": 5,
    "mean out-degree": 6.7,
    "largest out-degree": 33,
    "share of indexes that are empty": 0.15,
}
EDITS = {"add": 307, "edit": 3, "delete": 12, "link_many": 284, "unlink": 9, "merge": 8, "judged": 45}
# epoch 1, epoch 2
EDITS_A_PASS = (4.9, 1.6)
ACTIONS_A_PASS = (25.3, 14.7)
GROWTH = (2.4, 0.45)
MEAN_DEGREE = (6.79, 6.67)
EMPTY = (45, 43)
COVERAGE = (0.248, 0.276)
FORWARD_HALVES = (0.60, 0.66)
BREAK_EVEN = {"training": 18_800_000, "saved": 5_466, "questions": 3_400}
WORLD = {
    "documents": 5_864,
    "questions": 330,
    "train": 150,
    "test_in": 100,
    "test_out": 50,
    "eval": 30,
    "probe": 136,
}
