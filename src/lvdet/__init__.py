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
    from lvdet.calibrate.apply import calibrate_file
    from lvdet.calibrate.calibrator import Calibrator
    from lvdet.calibrate.comparison import compare_calibration
    from lvdet.calibrate.comparison_result import CalibrationTable
    from lvdet.calibrate.measure import Measurement, measure_calibration
    from lvdet.calibrate.reliability import calibration_errors, reliability_curve
    from lvdet.compare.comparison import compare_detectors
    from lvdet.compare.result import Comparison
    from lvdet.diagnosis.diagnose import diagnose
    from lvdet.diagnosis.result import Diagnosis
    from lvdet.errors import InputError, LvdetError, OutputError
    from lvdet.limit.budgets import PerClass, PerImage, PerImageClass
    from lvdet.metrics.audit import audit
    from lvdet.metrics.audit_result import Audit
    from lvdet.metrics.class_caps import ClassCap
    from lvdet.metrics.gaming import Reranking, rerank, search_class_cap
    from lvdet.metrics.protocols import evaluate
    from lvdet.metrics.result import Evaluation, ProtocolResult
    from lvdet.metrics.sweep import sweep
    from lvdet.metrics.sweep_result import Sweep, SweepRow
    from lvdet.read.annotations import read_ground_truth, write_ground_truth
    from lvdet.read.check import check
    from lvdet.read.detections import read_detections, write_detections
    from lvdet.report.report import Report, build_report
    from lvdet.sink.merge import merge_top_k
    from lvdet.sink.top_k_writer import TopKWriter
    from lvdet.synth.simulate import simulate
    from lvdet.tables.categories import Categories
    from lvdet.tables.detections import Detections
    from lvdet.tables.ground_truth import GroundTruth
    from lvdet.tables.masks import Masks
    from lvdet.tables.matches import Matches

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
    "build_report",
    "calibrate_file",
    "calibration_errors",
    "check",
    "compare_calibration",
    "compare_detectors",
    "diagnose",
    "evaluate",
    "measure_calibration",
    "merge_top_k",
    "read_detections",
    "read_ground_truth",
    "reliability_curve",
    "rerank",
    "search_class_cap",
    "simulate",
    "sweep",
    "write_detections",
    "write_ground_truth",
]

_HOMES = {
    "Audit": "lvdet.metrics.audit_result",
    "CalibrationTable": "lvdet.calibrate.comparison_result",
    "Calibrator": "lvdet.calibrate.calibrator",
    "Categories": "lvdet.tables.categories",
    "ClassCap": "lvdet.metrics.class_caps",
    "Comparison": "lvdet.compare.result",
    "Detections": "lvdet.tables.detections",
    "Diagnosis": "lvdet.diagnosis.result",
    "Evaluation": "lvdet.metrics.result",
    "GroundTruth": "lvdet.tables.ground_truth",
    "InputError": "lvdet.errors",
    "LvdetError": "lvdet.errors",
    "Masks": "lvdet.tables.masks",
    "Matches": "lvdet.tables.matches",
    "Measurement": "lvdet.calibrate.measure",
    "OutputError": "lvdet.errors",
    "PerClass": "lvdet.limit.budgets",
    "PerImage": "lvdet.limit.budgets",
    "PerImageClass": "lvdet.limit.budgets",
    "ProtocolResult": "lvdet.metrics.result",
    "Report": "lvdet.report.report",
    "Reranking": "lvdet.metrics.gaming",
    "Sweep": "lvdet.metrics.sweep_result",
    "SweepRow": "lvdet.metrics.sweep_result",
    "TopKWriter": "lvdet.sink.top_k_writer",
    "audit": "lvdet.metrics.audit",
    "build_report": "lvdet.report.report",
    "calibrate_file": "lvdet.calibrate.apply",
    "calibration_errors": "lvdet.calibrate.reliability",
    "check": "lvdet.read.check",
    "compare_calibration": "lvdet.calibrate.comparison",
    "compare_detectors": "lvdet.compare.comparison",
    "diagnose": "lvdet.diagnosis.diagnose",
    "evaluate": "lvdet.metrics.protocols",
    "measure_calibration": "lvdet.calibrate.measure",
    "merge_top_k": "lvdet.sink.merge",
    "read_detections": "lvdet.read.detections",
    "read_ground_truth": "lvdet.read.annotations",
    "reliability_curve": "lvdet.calibrate.reliability",
    "rerank": "lvdet.metrics.gaming",
    "search_class_cap": "lvdet.metrics.gaming",
    "simulate": "lvdet.synth.simulate",
    "sweep": "lvdet.metrics.sweep",
    "write_detections": "lvdet.read.detections",
    "write_ground_truth": "lvdet.read.annotations",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lvdet' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
