# What stint is built with. Only OpenSSL and Threads are link dependencies of an installed stint
# (see stint-config.cmake.in); Boost and xxhash are headers that only the build needs.
include_guard()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)

# EXACT and all three numbers: 1.74 is Debian's default and must not be picked up by accident, and
# "1.81 EXACT" does not match 1.81.0.
find_package(Boost 1.81.0 EXACT REQUIRED CONFIG COMPONENTS headers)

find_path(STINT_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

# What every layer, test and benchmark is compiled with. Never linked to `stint` itself, so that
# none of it leaks into the exported target.
add_library(stint_internal INTERFACE)
target_include_directories(stint_internal INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_include_directories(stint_internal SYSTEM INTERFACE ${STINT_XXHASH_INCLUDE_DIR})
# "=" makes it an empty definition, equal to a `#define XXH_INLINE_ALL` in a source.
target_compile_definitions(stint_internal INTERFACE XXH_INLINE_ALL=)
target_link_libraries(stint_internal INTERFACE
  stint_warnings Boost::headers OpenSSL::Crypto Threads::Threads)

if(STINT_TESTS AND NOT STINT_FUZZ)
  enable_testing()
  include(GoogleTest)
  find_package(GTest REQUIRED CONFIG)
  find_package(rapidcheck REQUIRED CONFIG)
elseif(STINT_FUZZ)
  enable_testing()
endif()
if(STINT_BENCH AND NOT STINT_FUZZ)
  find_package(benchmark REQUIRED CONFIG)
endif()
