#!/usr/bin/env bash
# Builds lvdet with clang and libc++, which lacks what Apple's lacks, installs it beside the
# packages of the environment, and runs the tests of the core with it.
# Usage: libcxx.sh PYTHON OUT
set -euo pipefail
python=$1 out=$2
cd "$(dirname "$0")/../.."
for version in "" -19 -18 -17 -16; do
    clang=$(command -v "clang++$version") && break
done
if ! echo '#include <charconv>' |
    "${clang:-false}" -stdlib=libc++ -std=c++20 -x c++ -fsyntax-only - 2> /dev/null; then
    echo "portability: clang with libc++ is missing: apt-get install clang-19 libc++-19-dev libc++abi-19-dev" >&2
    exit 1
fi
packages=$("$python" -c 'import nanobind, os; print(os.path.dirname(os.path.dirname(nanobind.__file__)))')
rm -rf "$out"
"$python" -m venv --without-pip "$out/venv"
for path in $("$out/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); do
    # After its own packages, and without what an editable installation adds.
    echo "import sys; sys.path.append('$packages')" > "$path/environment.pth"
    CXX=$clang CXXFLAGS="-stdlib=libc++" LDFLAGS="-stdlib=libc++" SKBUILD_BUILD_DIR="$out/build" \
        "$python" -m pip install --quiet --no-deps --target "$path" .
done
# The command line, as tests start it.
printf '#!/bin/sh\nexec "%s/venv/bin/python" -m lvdet "$@"\n' "$(realpath "$out")" > "$out/venv/bin/lvdet"
chmod +x "$out/venv/bin/lvdet"
"$out/venv/bin/python" - << 'END'
import pathlib, lvdet._native
module = pathlib.Path(lvdet._native.__file__)
assert "libcxx" in str(module), module
assert b"libc++.so" in module.read_bytes(), "not linked with libc++"
END
"$out/venv/bin/python" -m pytest -q -p no:cacheprovider -n 2 \
    tests/native tests/files tests/parity tests/calibration/test_isotonic.py
echo "portability: $("$clang" --version | head -1), libc++: built and tested"
