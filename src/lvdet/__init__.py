"""lvdet: exact, fast evaluation and calibration of large-vocabulary object detectors.

    gt = lvdet.read_ground_truth("lvis_v1_val.json")
    dt = lvdet.read_detections("results.json")
    result = lvdet.evaluate(gt, dt)
    result["fixed"].AP, result["pool"].APr

Names are loaded on first use, so `import lvdet` is cheap.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing it takes longer than all of this; type checkers take it as true
if TYPE_CHECKING:
    from typing import Any

    from lvdet.calibration.calibrate import calibrate
    from lvdet.calibration.calibration_table import CalibrationTable
    from lvdet.calibration.calibrator import Calibrator
    from lvdet.calibration.measure import Measurement
    from lvdet.calibration.thresholds import Thresholds, find_thresholds
    from lvdet.comparison.compare import compare
    from lvdet.comparison.comparison_result import Comparison
    from lvdet.diagnosis.diagnose import diagnose
    from lvdet.diagnosis.diagnosis_result import Diagnosis
    from lvdet.errors import InputError, LvdetError, OutputError
    from lvdet.evaluation.evaluation_result import Evaluation, ProtocolResult
    from lvdet.evaluation.protocols import evaluate
    from lvdet.files.annotation_files import read_ground_truth, write_ground_truth
    from lvdet.files.convert import convert
    from lvdet.files.detection_files import read_detections, write_detections
    from lvdet.limits.budgets import PerClass, PerImage, PerImageClass
    from lvdet.partials.detection_metric import DetectionMetric
    from lvdet.partials.partial import Partial
    from lvdet.plausibility.check import check
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
    "DetectionMetric",
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
    "Partial",
    "PerClass",
    "PerImage",
    "PerImageClass",
    "ProtocolResult",
    "Report",
    "Reranking",
    "Sweep",
    "SweepRow",
    "Thresholds",
    "TopKWriter",
    "__version__",
    "audit",
    "calibrate",
    "check",
    "compare",
    "convert",
    "diagnose",
    "evaluate",
    "find_thresholds",
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

#: The public names of each module.
_MODULES = {
    "calibration.calibrate": "calibrate",
    "calibration.calibration_table": "CalibrationTable",
    "calibration.calibrator": "Calibrator",
    "calibration.measure": "Measurement",
    "calibration.thresholds": "Thresholds find_thresholds",
    "comparison.compare": "compare",
    "comparison.comparison_result": "Comparison",
    "diagnosis.diagnose": "diagnose",
    "diagnosis.diagnosis_result": "Diagnosis",
    "errors": "InputError LvdetError OutputError",
    "evaluation.evaluation_result": "Evaluation ProtocolResult",
    "evaluation.protocols": "evaluate",
    "files.annotation_files": "read_ground_truth write_ground_truth",
    "files.convert": "convert",
    "files.detection_files": "read_detections write_detections",
    "limits.budgets": "PerClass PerImage PerImageClass",
    "partials.detection_metric": "DetectionMetric",
    "partials.partial": "Partial",
    "plausibility.check": "check",
    "reporting.report": "Report report",
    "simulation.simulate": "simulate",
    "studies.audit": "audit",
    "studies.audit_result": "Audit",
    "studies.class_caps": "ClassCap",
    "studies.reranking": "Reranking rerank search_class_cap",
    "studies.sweep": "sweep",
    "studies.sweep_result": "Sweep SweepRow",
    "tables.categories": "Categories",
    "tables.detections": "Detections",
    "tables.ground_truth": "GroundTruth",
    "tables.masks": "Masks",
    "tables.matches": "Matches",
    "threads": "set_threads",
    "writers.merge": "merge_top_k",
    "writers.top_k_writer": "TopKWriter",
}
_HOMES = {name: f"lvdet.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lvdet' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
