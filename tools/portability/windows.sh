#!/usr/bin/env bash
# Compiles and links the core for 64-bit Windows with mingw-w64. Python's functions come from an
# import library of the names that are used, so that anything else that Windows lacks is an error.
# Usage: windows.sh PYTHON OUT
set -euo pipefail
python=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
prefix=x86_64-w64-mingw32
compiler=$prefix-g++-posix
if ! command -v "$compiler" > /dev/null; then
    echo "portability: $compiler is missing: apt-get install g++-mingw-w64-x86-64-posix" >&2
    exit 1
fi
nanobind=$("$python" -c 'import nanobind, os; print(os.path.dirname(nanobind.__file__))')
includes=(
    -include "$here/pyconfig.h" "-I$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
    "-I$nanobind/include" "-I$nanobind/ext/robin_map/include"
)
mkdir -p "$out"

compile() {
    local object=$out/$(basename "$1").o
    local -a warnings=(-Wall -Wextra -Werror)
    case $1 in "$nanobind"/*) warnings=(-w) ;; esac
    "$compiler" -std=c++20 -O1 -ffp-contract=off "${warnings[@]}" -Wno-maybe-uninitialized \
        "${includes[@]}" -c "$1" -o "$object"
}
sources=("$here"/../../native/*.cpp "$nanobind/src/nb_combined.cpp")
for source in "${sources[@]}"; do compile "$source"; done
objects=()
for source in "${sources[@]}"; do objects+=("$out/$(basename "$source").o"); done
{
    echo "LIBRARY python3.dll"
    echo "EXPORTS"
    $prefix-nm --undefined-only "${objects[@]}" |
        sed -nE 's/^ *U (__imp_)?(_?Py[A-Za-z0-9_]+)$/\2/p' | sort -u
} > "$out/python.def"
$prefix-dlltool --input-def "$out/python.def" --output-lib "$out/libpython.a"
"$compiler" -shared -static "${objects[@]}" "$out/libpython.a" -o "$out/_native.pyd"
echo "portability: Windows (mingw-w64): ${#sources[@]} files compiled and linked, $(stat -c %s "$out/_native.pyd") bytes"
