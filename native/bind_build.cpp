// What this module was compiled with.
#include <string>

#include "bind_arrays.hpp"

namespace lvdet {

namespace {

std::string compiler() {
#if defined(__clang__)
    return "Clang " __clang_version__;
#elif defined(__GNUC__)
    return "GCC " __VERSION__;
#elif defined(_MSC_VER)
    return "MSVC " + std::to_string(_MSC_FULL_VER);
#else
    return "unknown";
#endif
}

// Sets of instructions that the whole module may use, and those that kernels choose as they run.
std::string instructions() {
    std::string found;
    const auto add = [&](const char* name) {
        found += (found.empty() ? "" : ", ") + std::string(name);
    };
#if defined(__AVX512F__)
    add("AVX-512");
#endif
#if defined(__AVX2__)
    add("AVX2");
#endif
#if defined(__SSE4_2__)
    add("SSE4.2");
#endif
#if defined(__SSE2__) || defined(_M_X64)
    add("SSE2");
#endif
#if defined(__ARM_NEON)
    add("NEON");
#endif
#if defined(__x86_64__) && !defined(__AVX2__)
    add("AVX2 where the CPU has it");
#endif
    return found.empty() ? "no vectors" : found;
}

}  // namespace

void bind_build(nb::module_& m) {
    m.def("build_compiler", &compiler);
    m.def("build_instructions", &instructions);
}

}  // namespace lvdet
