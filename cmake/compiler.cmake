# The compiler: which ones are accepted, the language, warnings, sanitizers, ccache and mold.
# Everything here is scoped to this project; a parent project keeps its own settings.
include_guard()
include(CheckCXXSourceCompiles)

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "stint needs GCC 12 or newer; this is ${CMAKE_CXX_COMPILER_VERSION}.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "stint needs Clang 16 or newer; this is ${CMAKE_CXX_COMPILER_VERSION}.")
endif()

# The version alone does not tell: libstdc++ hides std::expected from Clang before 19.
check_cxx_source_compiles("
  #include <expected>
  int main() { return std::expected<int, int>(0).value(); }" STINT_HAVE_STD_EXPECTED)
if(NOT STINT_HAVE_STD_EXPECTED)
  message(FATAL_ERROR
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} has no usable std::expected with this "
    "standard library. Use GCC 12 or newer, Clang 19 with libstdc++, or Clang 16 with libc++.")
endif()

# Called by every target that contains coroutines. The library core has none.
function(stint_require_coroutine_compiler)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    message(FATAL_ERROR
      "This target has coroutines, and GCC ${CMAKE_CXX_COMPILER_VERSION} miscompiles them without "
      "a warning: temporaries of an awaiting expression are destroyed twice, and some coroutine "
      "bodies never run. Use Clang 19 (cmake --preset release), or GCC 14 or newer. The library "
      "core has no coroutines and builds with GCC 12.")
  endif()
endfunction()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()

  find_program(STINT_CCACHE ccache)
  if(STINT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${STINT_CCACHE}")
  endif()

  find_program(STINT_MOLD mold)
  if(STINT_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# Bounds checks of the standard library wherever speed is not measured.
add_compile_definitions($<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

if(STINT_SANITIZE)
  set(sanitize_flags -fsanitize=${STINT_SANITIZE} -fno-sanitize-recover=all
                     -fno-omit-frame-pointer)
  if(STINT_SANITIZE MATCHES undefined)
    # Looks at memory through a pipe, and finds faults where there are none when no handle is left,
    # which is what a test of the listener makes so.
    list(APPEND sanitize_flags -fno-sanitize=vptr)
  endif()
  add_compile_options(${sanitize_flags})
  add_link_options(${sanitize_flags})
endif()

# Objects carry both machine code and what the optimizer wants to know: tests and the library link
# as ever, and only the program is optimized as a whole.
if(STINT_LTO)
  # One that is no older than the compiler.
  string(REGEX MATCH "^[0-9]+" major "${CMAKE_CXX_COMPILER_VERSION}")
  find_program(STINT_LLD NAMES ld.lld-${major} ld.lld)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT STINT_LLD)
    message(FATAL_ERROR "STINT_LTO needs Clang and its lld (package lld-19). Without: -DSTINT_LTO=OFF")
  endif()
  add_compile_options(-flto=thin -ffat-lto-objects)
endif()

# stint_optimize_as_a_whole(<target>)
function(stint_optimize_as_a_whole target)
  if(STINT_LTO)
    target_link_options(${target} PRIVATE
      -fuse-ld=lld --ld-path=${STINT_LLD} -flto=thin -Wl,--fat-lto-objects)
  endif()
endfunction()

# Which way the code goes, as counted while it was used: what is used often is compiled for speed and
# laid together, the rest for size. Code that has changed since is compiled as without.
if(STINT_PROFILE OR STINT_RECORD_PROFILE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
    message(FATAL_ERROR "A profile needs Clang 19 or newer. Without: -DSTINT_PROFILE=")
  endif()
  # Functions of a file are known by its name, not by where the sources lie.
  add_compile_options("SHELL:-mllvm -static-func-full-module-prefix=false")
endif()
if(STINT_RECORD_PROFILE)
  add_compile_options(-fprofile-generate)
  add_link_options(-fprofile-generate)
elseif(STINT_PROFILE)
  # Objects of two profiles do not link: under a name of its own, another one compiles all anew.
  file(SHA256 ${STINT_PROFILE} profile)
  string(SUBSTRING ${profile} 0 12 profile)
  set(profile ${PROJECT_BINARY_DIR}/profiles/${profile}.profdata)
  configure_file(${STINT_PROFILE} ${profile} COPYONLY)
  add_compile_options(-fprofile-use=${profile}
                      -Wno-profile-instr-out-of-date -Wno-profile-instr-unprofiled
                      -Wno-backend-plugin)
endif()

if(STINT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "STINT_FUZZ needs Clang: libFuzzer is part of it.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

add_library(stint_warnings INTERFACE)
target_compile_options(stint_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${STINT_WERROR}>:-Werror>)
