#!/usr/bin/env bash
# Builds the wheel, and installs it where a user would: in an empty environment, without a compiler
# and without building anything else. Runs the demo and evaluates its files; prints what installing
# takes, with no extra and with all except train.
# Usage: wheel_test.sh PYTHON OUT
set -euo pipefail
python=$1 out=$(realpath -m "$2")
cd "$(dirname "$0")/.."
rm -rf "$out"
mkdir -p "$out/wheels" "$out/bin"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$out/wheels" .
wheel=$(ls "$out"/wheels/lvdet-*.whl)
echo "$(basename "$wheel"): $(($(stat -c %s "$wheel") / 1000)) kB"

# The tools that a shell needs, and no compiler.
for tool in bash env uname; do ln -s "$(command -v $tool)" "$out/bin/$tool"; done

installed() { # NAME REQUIREMENT
    local name=$1 requirement=$2 folder="$out/$1" began before after
    "$python" -m venv "$folder"
    local site=("$folder"/lib/python3*/site-packages)
    before=$(du -sk "${site[0]}" | cut -f1)
    began=$(date +%s.%N)
    PATH="$folder/bin:$out/bin" pip install --quiet --disable-pip-version-check --no-cache-dir \
        --only-binary :all: "$requirement"
    after=$(date +%s.%N)
    echo "$name: $((($(du -sk "${site[0]}" | cut -f1) - before) * 1024 / 1000000)) MB in" \
        "$(awk -v a="$began" -v b="$after" 'BEGIN { printf "%.1f", b - a }') s"
}

run() { # NAME ARGUMENTS…
    (cd "$out" && PATH="$out/$1/bin:$out/bin" lvdet "${@:2}")
}

installed base "$wheel"
if PATH="$out/base/bin:$out/bin" command -v cc c++ gcc g++ clang cmake; then
    echo "a compiler is on the path" >&2
    exit 1
fi
run base demo demo --images 100 --classes 100 > "$out/demo.txt"
grep -q "lvdet\[report\]" "$out/demo.txt"
run base evaluate demo/annotations.json demo/results.json -o scores.json
installed full "$wheel[parquet,figures]"
run full demo full --images 100 --classes 100 > "$out/full.txt"
test -s "$out/full/report.html"
cmp "$out/demo/scores.json" <(sed 's#full/#demo/#g' "$out/full/scores.json")
run full convert demo/results.json -o results.parquet
run full evaluate demo/annotations.json results.parquet > /dev/null
echo "wheel-test: the demo and evaluate run in both"
