"""Mutants that change no answer, and so no test: the changed line of each file, and why."""

from __future__ import annotations

EQUIVALENT = {
    "src/lvdet/evaluation/average_precision.py": {
        "points: bool = True,": "precision at each recall is computed, and not asked for",
    },
    "src/lvdet/evaluation/pooled.py": {
        "member[number, pool] = 2": "any number but 0 means membership",
    },
    "src/lvdet/evaluation/protocols.py": {
        "return (budgets[0] if len(budgets) > 1 and isinstance(budgets[0], PerImageClass) "
        "else None)": "all rows are read, and limited afterwards",
    },
    "src/lvdet/limits/budgets.py": {
        "return int(results.per_class.max(initial=1))": "1 is an upper bound of no detections too",
    },
    "src/lvdet/limits/ranks.py": {
        "_REMEMBERED = (1 >> 26)": "what is forgotten is computed again",
        "NOT_KEPT = 2**31 - 2": "a group would need 2,147,483,646 rows kept",
        "pass  # self._asked.add(first)": "the best are searched for again, not ranked: slower",
    },
    "src/lvdet/matching/class_agnostic.py": {
        "partners_at=-2,": "any negative number means none",
    },
    "src/lvdet/matching/match.py": {
        "rows = np.flatnonzero((gt.area > 0) & ((gt.area <= np.inf)))": (
            "readers refuse infinite areas"
        ),
    },
    "native/walk.hpp": {
        "count = std::max(count, static_cast<std::int64_t>(recalls[r] / objects) - 1);": (
            "a search begins earlier, and ends in the same place"
        ),
        "bool tied_ = true;": "the start of each ranking sets it",
    },
}
