#!/usr/bin/env bash
# Runs the tests as if on other CPUs, on which sums and exponentials are rounded otherwise: a line
# each. Arguments go to pytest; PYTHON is the interpreter.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}

# NumPy names what it may leave out, by version: all of it, and what came after AVX2.
mapfile -t left_out < <("$python" - <<'PY'
from numpy._core._multiarray_umath import __cpu_dispatch__ as ways, __cpu_features__ as there
here = [way for way in ways if there.get(way)]
print(*here)
print(*(way for way in here if "512" in way or way == "X86_V4"))
PY
)
every="NPY_DISABLE_CPU_FEATURES=${left_out[0]}"
after_avx2="NPY_DISABLE_CPU_FEATURES=${left_out[1]}"
plain_libm="GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"

worst=0
imitate() {
    local name=$1 log end
    shift
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    log=$(mktemp)
    env "${settings[@]}" "$python" -m pytest -q -n 2 --dist worksteal -p no:cacheprovider "$@" \
        >"$log" 2>&1
    end=$?
    echo "$name: $(tail -n 1 "$log")"
    if [ "$end" -ne 0 ]; then
        worst=1
        grep -E '^(FAILED|ERROR)' "$log" | sed 's/^/    /'
        echo "    all of it: $log"
    else
        rm "$log"
    fi
}

imitate "SSE alone" "$every" "$plain_libm" ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 \
    OPENBLAS_CORETYPE=Nehalem OMP_NUM_THREADS=1 -- "$@"
imitate "Haswell" "$after_avx2" ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 \
    OPENBLAS_CORETYPE=Haswell -- "$@"
imitate "Zen" "$after_avx2" ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 \
    OPENBLAS_CORETYPE=Zen OMP_NUM_THREADS=1 -- "$@"
imitate "Skylake" OPENBLAS_CORETYPE=SkylakeX ONEDNN_MAX_CPU_ISA=AVX512_CORE -- "$@"
imitate "NumPy of SSE beside all else" "$every" -- "$@"
imitate "PyTorch of SSE beside all else" ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 -- "$@"
imitate "exponentials without FMA" "$plain_libm" OPENBLAS_CORETYPE=Haswell -- "$@"
exit $worst
