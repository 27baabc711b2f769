// How plain loops get vector code for the processor at hand, while the binary still runs on any
// processor of the architecture.
#pragma once

// On a function: the compiler emits it once per instruction set level, and the best one that the
// processor has is taken when the program starts. Elsewhere (other architectures, whose baseline
// has vectors, and compilers without the feature) it does nothing. Sanitizers instrument the
// resolvers, which run before their runtime is ready, so that it does nothing there either.
#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TANDEM_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TANDEM_MULTIVERSION
#endif

// Code called from a multiversioned function belongs into it, or it stays baseline code.
#define TANDEM_INLINE __attribute__((always_inline)) inline
// The same on a lambda, after its parameters.
#define TANDEM_LAMBDA_INLINE __attribute__((always_inline))

// Before a loop whose iterations do not depend on each other, although its pointers may be equal:
// reads and writes of the same place in one iteration are fine.
#if defined(__clang__)
#define TANDEM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TANDEM_INDEPENDENT _Pragma("GCC ivdep")
#endif
