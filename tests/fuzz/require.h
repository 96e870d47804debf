// What a fuzzer asserts, kept in every build.
#pragma once

#include <cstdio>
#include <cstdlib>

// Ends the program, which libFuzzer reports together with the input.
#define STINT_REQUIRE(condition)                                                   \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)
