"""Calibration by lvdet and by netcal: same classes, one process a run, chances compared.

    python benchmarks/calibration.py                       1,203 classes of 10,000, 3 rounds
    python benchmarks/calibration.py --every 200 --rounds 1
    python benchmarks/calibration.py --classes 100 --detections 2000

lvdet fits and applies every class, netcal every 60th; its seconds are scaled to all of them. netcal
runs twice: as it comes, with torch's own number of threads, which the total is held to, and with
one thread, which is faster on small arrays. No method may be slower than the faster of the two.
Exits 1 when the chances disagree or a tool fails. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from process import Limits, Sample, measure
from run import memory_gib, positive

HERE = Path(__file__).resolve().parent
SUBJECT, BASELINE, ONE_THREAD = "lvdet", "netcal", "netcal-one-thread"
#: Each tool's runner and what it is told.
RUNNERS = {
    SUBJECT: ("calibrate_lvdet.py", []),
    BASELINE: ("calibrate_netcal.py", []),
    ONE_THREAD: ("calibrate_netcal.py", ["--threads", "1"]),
}
#: The paper's five, with how far chances may differ from netcal's. It takes the likelihoods of
#: BBQ in float32 and ends its regressions early: there the log loss is compared instead.
METHODS = {"histogram": 2e-6, "bbq": None, "beta": None, "isotonic": 2e-6, "platt": None}
#: What lvdet's mean log loss may be above netcal's: new scores are chances to a millionth.
LOSS_ROOM = 1e-5
#: lvdet's share of netcal's seconds that it is to stay under, in all and for each method.
TOTAL_SHARE, EACH_SHARE = 1 / 40, 1.0
SEED = 20


def main() -> int:
    options = _options()
    if not Path(options.peers_python).exists():
        raise SystemExit(
            f"{options.peers_python} is missing: `make bench-calibration` installs the peers"
        )
    options.cache.mkdir(parents=True, exist_ok=True)
    classes = _class_file(options)
    limits = Limits(options.time_limit, memory_gib() * 1024)
    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, list[Sample]] = {tool: [] for tool in RUNNERS}
        for _ in range(options.rounds):
            for tool in RUNNERS:
                runs[tool].append(_run(tool, classes, Path(folder), options, limits))
        failures = [run.failure for samples in runs.values() for run in samples if run.failure]
        if failures:
            print("\n".join(failures))
            return 1
        sampled = -(-options.classes // options.every)
        print(_table(runs, options.classes / sampled, options))
        notes, sound = _agreement(classes, Path(folder), options.every)
    print("\n".join(notes))
    return 0 if sound else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", type=positive, default=1203)
    parser.add_argument("--detections", type=positive, default=10_000, help="of each class")
    parser.add_argument("--every", type=positive, default=60, help="netcal takes each of these")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--time-limit", type=float, default=1800, help="seconds a run")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", help="where the classes are")
    parser.add_argument(
        "--peers-python",
        default=HERE / ".venv" / "bin" / "python",
        help="interpreter of the environment made from requirements.txt",
    )
    return parser.parse_args()


def _class_file(options: argparse.Namespace) -> Path:
    """Falling scores (float32) and labels of every class, made once."""
    path = options.cache / f"calibration-{options.classes}x{options.detections}-{SEED}.npz"
    if not path.exists():
        score, right = made_classes(options.classes, options.detections)
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, score=score, right=right)
        unfinished.rename(path)
    return path


def made_classes(classes: int, detections: int) -> tuple[np.ndarray, np.ndarray]:
    """[C, N] scores and labels; a class's chances are its scores, distorted, and few are right:
    the shares have a long tail down to one in a thousand."""
    rng = np.random.default_rng(SEED)
    score = np.empty((classes, detections), dtype=np.float32)
    right = np.empty((classes, detections), dtype=bool)
    for row in range(classes):
        low, high = rng.uniform(0.3, 2.0), rng.uniform(1.0, 8.0)
        drawn = rng.beta(low, high, detections).astype(np.float32)
        score[row] = -np.sort(-np.clip(drawn, 1e-6, 1 - 2.0**-20))
        inside = score[row].astype(np.float64)
        odds = rng.lognormal(0.0, 0.4) * (np.log(inside) - np.log1p(-inside))
        rate = np.exp(rng.uniform(np.log(1e-3), np.log(0.5)))
        # The offset at which the mean chance is the rate, by halving.
        below, above = -50.0, 50.0
        for _ in range(30):
            offset = (below + above) / 2
            low_mean = np.mean(1 / (1 + np.exp(-odds - offset))) < rate
            below, above = (offset, above) if low_mean else (below, offset)
        right[row] = rng.random(detections) < 1 / (1 + np.exp(-odds - offset))
    return score, right


def _run(
    tool: str, classes: Path, folder: Path, options: argparse.Namespace, limits: Limits
) -> Sample:
    python = sys.executable if tool == SUBJECT else str(options.peers_python)
    runner, told = RUNNERS[tool]
    out, every = folder / f"{tool}.npz", str(options.every)
    load = os.getloadavg()[0]
    command = [python, HERE / "peers" / runner, classes, out, "--every", every, *told]
    sample = measure(command, limits)
    outcome = sample.failure or f"{sample.wall:.1f} s"
    print(f"{tool}: {outcome}, load before {load:.1f}", file=sys.stderr, flush=True)
    return sample


def _table(runs: dict[str, list[Sample]], scale: float, options: argparse.Namespace) -> str:
    """A row a method, the totals, and whether lvdet stays under its shares."""
    seconds = {
        tool: _medians(samples, 1.0 if tool == SUBJECT else scale) for tool, samples in runs.items()
    }
    for methods in seconds.values():
        methods["total"] = sum(methods.values())
    own, base, one_thread = (seconds[tool] for tool in RUNNERS)
    faster = {name: min(base[name], one_thread[name]) for name in METHODS}
    versions = ", ".join(f"{tool} {runs[tool][0].line['version']}" for tool in (SUBJECT, BASELINE))
    title = f"calibration: {options.classes:,} classes × {options.detections:,} detections"
    machine = f"{os.cpu_count()} CPUs, load at the end {os.getloadavg()[0]:.1f}"
    lines = [
        f"\n{title}, medians of {options.rounds}; {versions}; {machine}",
        f"  {'method':<10}{'lvdet':>10}{'netcal':>20}{'netcal, one thread':>26}",
    ]
    for name in own:
        cells = [
            f"{theirs[name]:,.1f} s ({theirs[name] / own[name]:,.0f} x)"
            for theirs in (base, one_thread)
        ]
        lines.append(f"  {name:<10}{own[name]:>8.2f} s{cells[0]:>20}{cells[1]:>26}")
    lines.append("\ntargets")
    aims = [("total", TOTAL_SHARE, base["total"], BASELINE)]
    aims += [(name, EACH_SHARE, faster[name], f"{BASELINE}'s faster") for name in METHODS]
    for name, share, theirs, whose in aims:
        reached = own[name] / theirs
        verdict = "met" if reached <= share else "NOT MET"
        aim = f"{name}: {SUBJECT}'s seconds ≤ {share:.3f} of {whose}"
        lines.append(f"  {verdict:<8} {aim} (here {reached:.4f})")
    return "\n".join(lines)


def _medians(samples: list[Sample], scale: float) -> dict[str, float]:
    return {name: scale * median(run.seconds(name) for run in samples) for name in METHODS}


def _agreement(classes: Path, folder: Path, every: int) -> tuple[list[str], bool]:
    """How far the last round's chances differ, and whether that is as it must be."""
    right = np.load(classes)["right"][::every]
    ours, theirs = (np.load(folder / f"{tool}.npz") for tool in (SUBJECT, BASELINE))
    lines, sound = ["\nchances of the classes that both did"], True
    for name, most in METHODS.items():
        difference = float(np.abs(ours[name] - theirs[name]).max())
        losses = [_log_loss(chances[name], right) for chances in (ours, theirs)]
        holds = losses[0] <= losses[1] + LOSS_ROOM if most is None else difference <= most
        sound &= holds
        lines.append(
            f"  {_verdict(most, holds):<14} {name}: at most {difference:.1e} apart; "
            f"mean log loss less {BASELINE}'s {losses[0] - losses[1]:+.1e}"
        )
    return lines, sound


def _verdict(most: float | None, holds: bool) -> str:
    if not holds:
        return "DISAGREE"
    return "loss no higher" if most is None else "equal"


def _log_loss(chance: np.ndarray, right: np.ndarray) -> float:
    likely = np.where(right, chance, 1 - chance)
    return float(-np.mean(np.log(np.maximum(likely, 1e-12))))


if __name__ == "__main__":
    sys.exit(main())
