"""`lvdet audit`: which numbers of a results file are safe to publish."""

from __future__ import annotations

from lvdet.cli.cluster_option import Cluster, SkipBadShards, placed
from lvdet.cli.options import Annotations, DropDuplicates, ExactLvis, Iou, Outputs, Results, Threads
from lvdet.cli.terminal import finish, progress_bar, require_outputs

EXAMPLES = """\b
Examples:
  lvdet audit lvis_v1_val.json results.json
  lvdet audit gt.json results.parquet -o audit.json
"""


def run(
    ground_truth: Annotations,
    detections: Results,
    output: Outputs = None,
    iou: Iou = None,
    exact_lvis: ExactLvis = False,
    drop_duplicates: DropDuplicates = False,
    cluster: Cluster = None,
    skip_bad_shards: SkipBadShards = False,
    threads: Threads = None,
) -> None:
    """Report which numbers are safe to publish.

    Checks whether the file was truncated, which classes have fewer detections than AP-Fixed's
    limit, and how far re-ranking alone can raise AP-Old.
    """
    require_outputs(output)

    from lvdet.studies.audit import audit

    result = placed(audit, cluster, skip_bad_shards)(
        ground_truth,
        detections,
        iou=iou,
        exact_lvis=exact_lvis,
        drop_duplicates=drop_duplicates,
        progress=progress_bar,
    )
    finish(result, output)
