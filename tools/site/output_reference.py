"""The reference of JSON outputs, from the schemas in docs/schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from site_pages import ROOT

SCHEMAS = ROOT / "docs" / "schemas"
_HEAD = """\
# JSON outputs

Generated from the [JSON Schemas](https://json-schema.org/) beside each table. The tests hold every
output to its schema. Metrics are fractions in [0, 1], not rounded, and `null` where undefined.
"""
#: What writes each output, in the order of the page.
COMMANDS = {
    "evaluate": "lvdet evaluate GT DT -o FILE.json",
    "sweep": "lvdet sweep GT DT -o FILE.json",
    "audit": "lvdet audit GT DT -o FILE.json",
    "rerank": "lvdet rerank GT DT --summary FILE.json",
    "compare": "lvdet compare GT DT DT -o FILE.json",
    "report": "lvdet report GT DT --summary FILE.json",
    "calibrate-fit": "lvdet calibrate fit GT DT -o CAL.json",
    "calibrate-apply": "lvdet calibrate apply CAL.json DT -o OUT --summary FILE.json",
    "calibrate-compare": "lvdet calibrate compare GT DT -o FILE.json",
    "calibrate-measure": "lvdet calibrate measure GT DT -o FILE.json",
    "calibrate-thresholds": "lvdet calibrate thresholds GT DT -o FILE.json",
    "check": "lvdet check GT DT -o FILE.json",
    "convert": "lvdet convert DT -o OUT --summary FILE.json",
    "synth": "lvdet synth DIR --summary FILE.json",
    "train": "lvdet train CONFIG.toml --summary FILE.json",
    "predict": "lvdet predict CHECKPOINT IMAGES -o OUT --summary FILE.json",
    "experiment": "lvdet experiment NAME -o DIR  # writes DIR/tables.json",
}
#: What keys mean, by their last part.
MEANINGS = {
    "AP": "average precision",
    "AP50": "AP at IoU 0.5",
    "AP75": "AP at IoU 0.75",
    "APs": "AP of small objects",
    "APm": "AP of medium objects",
    "APl": "AP of large objects",
    "APr": "AP of rare classes",
    "APc": "AP of common classes",
    "APf": "AP of frequent classes",
    "AR": "recall within the limit, mean over classes",
    "ARs": "AR of small objects",
    "ARm": "AR of medium objects",
    "ARl": "AR of large objects",
    "ARr": "AR of objects of rare classes",
    "ARc": "AR of objects of common classes",
    "ARf": "AR of objects of frequent classes",
    "AR1": "COCO files: AR at 1 detection per image and class",
    "AR10": "COCO files: AR at 10 detections per image and class",
    "AR100": "COCO files: AR at 100 detections per image and class",
    "^AP_": "AP of a group of `--groups`",
    "^AR_": "AR of a group of `--groups`",
    "^[0-9]+/": "the same under a budget of `--budget`",
    "^[a-z0-9-]+$": "the preset of `--like`, in place of the protocols",
    "adaptive": "calibration error with bins of equal count",
    "agnostic_recall": "class-agnostic recall, one entry per limit",
    "baseline": "the detector that others are compared with, or its value",
    "before": "AP without the change",
    "after": "AP with the change",
    "at": "the condition that the row is measured under",
    "batch": "images at a time",
    "best": "the class cap that raises AP-Old most",
    "bins": "number of bins",
    "brier": "Brier score",
    "budget": "the limits that the number was computed under",
    "byte": "position in the file",
    "bytes": "size of the file",
    "caps_tried": "number of class caps tried",
    "checkpoint": "the last checkpoint",
    "confidence": "confidence level",
    "damaged": "names of the skipped images",
    "data_wait": "fraction of the time spent waiting for images",
    "delta": "difference from the row or detector that it is compared with",
    "detection_count": "detections in the results file",
    "dets_per_class": "limit per class; `null` for none",
    "dets_per_image": "limit per image; `null` for none",
    "duplicates_dropped": "detections that `--drop-duplicates` left out",
    "error": "standard error of the difference",
    "exact_lvis": "whether `--exact-lvis` was given",
    "expected": "expected calibration error (ECE)",
    "files": "the files read",
    "format": "`lvis` or `coco`",
    "frequency": "`r`, `c` or `f`",
    "full_classes": "classes with as many detections as the limit per class allows",
    "gain": "how far re-ranking raises AP-Old",
    "gpu_memory": "peak memory on the GPU in bytes; `null` without one",
    "hash": "BLAKE2b hash of the file, or of a sample of a large one",
    "high": "upper end of the confidence interval",
    "holds": "whether the confidence interval excludes 0",
    "implausible": "signs that the file is not what its owner thinks",
    "images_per_s": "training images per second",
    "incomplete": "whether the file was truncated below this row's limit",
    "inputs": "what was read",
    "iou": "`bbox`, `segm` or `boundary`",
    "like": "what the preset of `--like` stands for",
    "log": "the last line of losses in the log",
    "log_loss": "log loss",
    "losses": "mean of each loss since the line before",
    "low": "lower end of the confidence interval",
    "lvdet": "the version that wrote the file",
    "mean": "mean over seeds",
    "maximum": "maximum calibration error (MCE)",
    "oLRP": "optimal LRP error",
    "paper": "the paper's value",
    "p_value": "p-value of the class's difference",
    "pool": "AP-Pool",
    "fixed": "AP-Fixed",
    "old": "AP-Old",
    "problems": "every problem found",
    "findings": "signs that the file is not what its owner thinks",
    "resamples": "number of bootstrap samples",
    "reranked": "whether the row is the AP-Old of a re-ranked file",
    "row": "row of the file, from 0",
    "sd": "standard deviation over seeds",
    "schema": "rises when a key changes its meaning or goes away",
    "seed": "random seed",
    "starting": "the part of `seconds` before the first batches",
    "values": "a value for each column",
    "short_classes": "classes with fewer detections than the limit",
    "skipped_shards": "what is wrong with the files that `--skip-bad-shards` left out",
    "standing": "`publishable`, `gameable`, … of each number",
    "threshold": "score threshold of the class",
    "tie_high": "highest AP over all orders of equal scores",
    "tie_low": "lowest AP over all orders of equal scores",
    "verdict": "the standing of each number in sentences",
    "verdicts": "the outcome in sentences",
    "warnings": "warnings, one sentence each",
}


def page() -> str:
    """The page, as Markdown."""
    parts = [_HEAD]
    for name, command in COMMANDS.items():
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
        parts.append(f"## {name.replace('-', ' ')}\n\n```text\n{command}\n```\n")
        parts.append(f"[JSON Schema](../schemas/{name}.schema.json)\n")
        parts.append("| key | type | |\n|---|---|---|")
        parts.extend(_rows(schema, "", {}))
        parts.append("")
    return "\n".join(parts)


def _rows(schema: dict[str, Any], place: str, seen: dict[str, str]) -> Iterator[str]:
    """A row for each key below; keys of an object that was described already are not repeated."""
    required = schema.get("required", ())
    named = list(schema.get("properties", {}).items())
    named += list(schema.get("patternProperties", {}).items())
    for key, inner in named:
        path = f"{place}.{key}" if place else key
        notes = [MEANINGS.get(key, "")]
        if key not in required:
            notes.append("not always there")
        below, suffix = inner, ""
        while "items" in below or isinstance(below.get("additionalProperties"), dict):
            suffix += "[]" if "items" in below else ".*"
            below = below.get("items") or below["additionalProperties"]
        body = json.dumps(below, sort_keys=True)
        known = seen.get(body) if "properties" in below else None
        if known:
            notes.append(f"keys as in `{known}`")
        shown = "; ".join(note for note in notes if note)
        yield f"| `{path}` | {_type(inner)} | {shown} |"
        if "properties" in below and not known:
            seen[body] = path
            yield from _rows(below, path + suffix, seen)


def _type(schema: dict[str, Any]) -> str:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(kinds)
