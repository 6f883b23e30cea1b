"""lvdet: exact, fast evaluation and calibration of large-vocabulary object detectors.

    gt = lvdet.read_ground_truth("lvis_v1_val.json")
    dt = lvdet.read_detections("results.json")
    result = lvdet.evaluate(gt, dt)
    result["fixed"].AP, result["pool"].APr

Names are loaded when first used, so that `import lvdet` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lvdet.calibration.calibrate import calibrate
    from lvdet.calibration.calibration_table import CalibrationTable
    from lvdet.calibration.calibrator import Calibrator
    from lvdet.calibration.measure import Measurement
    from lvdet.comparison.compare import compare
    from lvdet.comparison.comparison_result import Comparison
    from lvdet.diagnosis.diagnose import diagnose
    from lvdet.diagnosis.diagnosis_result import Diagnosis
    from lvdet.errors import InputError, LvdetError, OutputError
    from lvdet.evaluation.evaluation_result import Evaluation, ProtocolResult
    from lvdet.evaluation.protocols import evaluate
    from lvdet.files.annotation_files import read_ground_truth, write_ground_truth
    from lvdet.files.check import check
    from lvdet.files.convert import convert
    from lvdet.files.detection_files import read_detections, write_detections
    from lvdet.limits.budgets import PerClass, PerImage, PerImageClass
    from lvdet.reporting.report import Report, report
    from lvdet.simulation.simulate import simulate
    from lvdet.studies.audit import audit
    from lvdet.studies.audit_result import Audit
    from lvdet.studies.class_caps import ClassCap
    from lvdet.studies.reranking import Reranking, rerank, search_class_cap
    from lvdet.studies.sweep import sweep
    from lvdet.studies.sweep_result import Sweep, SweepRow
    from lvdet.tables.categories import Categories
    from lvdet.tables.detections import Detections
    from lvdet.tables.ground_truth import GroundTruth
    from lvdet.tables.masks import Masks
    from lvdet.tables.matches import Matches
    from lvdet.threads import set_threads
    from lvdet.writers.merge import merge_top_k
    from lvdet.writers.top_k_writer import TopKWriter

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "CalibrationTable",
    "Calibrator",
    "Categories",
    "ClassCap",
    "Comparison",
    "Detections",
    "Diagnosis",
    "Evaluation",
    "GroundTruth",
    "InputError",
    "LvdetError",
    "Masks",
    "Matches",
    "Measurement",
    "OutputError",
    "PerClass",
    "PerImage",
    "PerImageClass",
    "ProtocolResult",
    "Report",
    "Reranking",
    "Sweep",
    "SweepRow",
    "TopKWriter",
    "__version__",
    "audit",
    "calibrate",
    "check",
    "compare",
    "convert",
    "diagnose",
    "evaluate",
    "merge_top_k",
    "read_detections",
    "read_ground_truth",
    "report",
    "rerank",
    "search_class_cap",
    "set_threads",
    "simulate",
    "sweep",
    "write_detections",
    "write_ground_truth",
]

_HOMES = {
    "Audit": "lvdet.studies.audit_result",
    "CalibrationTable": "lvdet.calibration.calibration_table",
    "Calibrator": "lvdet.calibration.calibrator",
    "Categories": "lvdet.tables.categories",
    "ClassCap": "lvdet.studies.class_caps",
    "Comparison": "lvdet.comparison.comparison_result",
    "Detections": "lvdet.tables.detections",
    "Diagnosis": "lvdet.diagnosis.diagnosis_result",
    "Evaluation": "lvdet.evaluation.evaluation_result",
    "GroundTruth": "lvdet.tables.ground_truth",
    "InputError": "lvdet.errors",
    "LvdetError": "lvdet.errors",
    "Masks": "lvdet.tables.masks",
    "Matches": "lvdet.tables.matches",
    "Measurement": "lvdet.calibration.measure",
    "OutputError": "lvdet.errors",
    "PerClass": "lvdet.limits.budgets",
    "PerImage": "lvdet.limits.budgets",
    "PerImageClass": "lvdet.limits.budgets",
    "ProtocolResult": "lvdet.evaluation.evaluation_result",
    "Report": "lvdet.reporting.report",
    "Reranking": "lvdet.studies.reranking",
    "Sweep": "lvdet.studies.sweep_result",
    "SweepRow": "lvdet.studies.sweep_result",
    "TopKWriter": "lvdet.writers.top_k_writer",
    "audit": "lvdet.studies.audit",
    "calibrate": "lvdet.calibration.calibrate",
    "check": "lvdet.files.check",
    "compare": "lvdet.comparison.compare",
    "convert": "lvdet.files.convert",
    "diagnose": "lvdet.diagnosis.diagnose",
    "evaluate": "lvdet.evaluation.protocols",
    "merge_top_k": "lvdet.writers.merge",
    "read_detections": "lvdet.files.detection_files",
    "read_ground_truth": "lvdet.files.annotation_files",
    "report": "lvdet.reporting.report",
    "rerank": "lvdet.studies.reranking",
    "search_class_cap": "lvdet.studies.reranking",
    "set_threads": "lvdet.threads",
    "simulate": "lvdet.simulation.simulate",
    "sweep": "lvdet.studies.sweep",
    "write_detections": "lvdet.files.detection_files",
    "write_ground_truth": "lvdet.files.annotation_files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lvdet' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
