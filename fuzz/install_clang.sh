#!/bin/sh
# Prints a clang++ that links libFuzzer and the sanitizers: one that is there, or Debian's, installed
# where it is missing and may be. Fails, and says so on standard error, where there is none.
works() {
    command -v "$1" > /dev/null || return 1
    folder=$(mktemp -d)
    echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' \
        > "$folder/target.cpp"
    "$1" -fsanitize=fuzzer,address,undefined "$folder/target.cpp" -o "$folder/target" \
        > "$folder/log" 2>&1 &&
        "$1" -fsanitize=fuzzer,thread "$folder/target.cpp" -o "$folder/target" > "$folder/log" 2>&1
    found=$?
    rm -r "$folder"
    return $found
}
find_clang() {
    for name in clang++ $(seq -f clang++-%g 30 -1 14); do
        if works "$name"; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}
install_packages() {
    apt-get install -y -q --no-install-recommends "$@" > /dev/null 2>&1
}

find_clang && exit 0
if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
    echo "clang with libFuzzer is missing and may not be installed here (that needs root and" \
        "apt-get)" >&2
    exit 1
fi
echo "clang with libFuzzer is missing: installing Debian's" >&2
install_packages clang || { apt-get update -q > /dev/null 2>&1 && install_packages clang; }
# Its libraries are a package of its version.
for name in clang $(seq -f clang-%g 30 -1 14); do
    if command -v "$name" > /dev/null; then
        install_packages "libclang-rt-$("$name" -dumpversion | cut -d . -f 1)-dev"
    fi
done
find_clang && exit 0
echo "clang with libFuzzer could not be installed" >&2
exit 1
