# The functions that the CMakeLists.txt of the folders call. Each does nothing when its kind of
# target is switched off, so that callers need no conditions.
include_guard()

# The one library that programs link: the objects of all layers.
add_library(stint STATIC)
add_library(stint::stint ALIAS stint)
set_target_properties(stint PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(stint PUBLIC cxx_std_23)
target_include_directories(stint PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(stint PRIVATE OpenSSL::Crypto Threads::Threads)

if(STINT_LAYER_CHECK)
  find_program(STINT_PYTHON python3 HINTS /usr/bin REQUIRED)
  add_custom_target(stint_layer_check ALL
    COMMAND ${STINT_PYTHON} -B ${PROJECT_SOURCE_DIR}/tools/check_layers.py
            --root ${PROJECT_SOURCE_DIR}
    COMMENT "Checking who includes whom" VERBATIM)
  # Also when somebody builds a single target.
  add_dependencies(stint stint_layer_check)
endif()

# Tests that use threads; what the tsan preset builds, instead of everything.
if(STINT_TESTS)
  add_custom_target(stint_concurrent_tests)
endif()

macro(_stint_parse function multi)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "${multi}")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "${function}(${name}): needs SOURCES; takes: ${multi}.")
  endif()
endmacro()

# stint_layer(<name> SOURCES a.cc... [DEPENDS <layer>...])
# One folder, one layer. An object library `stint_<name>` whose objects become part of `stint`.
function(stint_layer name)
  _stint_parse(stint_layer "SOURCES;DEPENDS")
  add_library(stint_${name} OBJECT ${arg_SOURCES})
  set_target_properties(stint_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(stint_${name} PUBLIC stint_internal)
  foreach(layer IN LISTS arg_DEPENDS)
    if(NOT TARGET stint_${layer})
      message(FATAL_ERROR "Layer '${name}' depends on '${layer}', which is not a layer below it.")
    endif()
    target_link_libraries(stint_${name} PUBLIC stint_${layer})
  endforeach()
  target_sources(stint PRIVATE $<TARGET_OBJECTS:stint_${name}>)
endfunction()

# Sees the headers under src/ by layer ("limit/algorithms.h") and those of tests by the path from
# the project root ("tests/model/reference_store.h").
function(_stint_inside name)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE stint stint_internal ${ARGN})
endfunction()

# stint_test_library(<name> SOURCES a.cc... [LIBS <target>...])
# Code that several tests share, such as the reference model.
function(stint_test_library name)
  if(NOT STINT_TESTS OR STINT_FUZZ)
    return()
  endif()
  _stint_parse(stint_test_library "SOURCES;LIBS")
  add_library(${name} STATIC ${arg_SOURCES})
  _stint_inside(${name} GTest::gmock ${arg_LIBS})
endfunction()

# stint_test(<name> SOURCES x_test.cc... [LABELS unit|concurrent|property|contract...] [LIBS ...])
# A GoogleTest program; every test case becomes a test of CTest. The label defaults to `unit`.
function(stint_test name)
  if(NOT STINT_TESTS OR STINT_FUZZ)
    return()
  endif()
  _stint_parse(stint_test "SOURCES;LABELS;LIBS")
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_SOURCES})
  _stint_inside(${name} GTest::gmock_main ${arg_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if("concurrent" IN_LIST arg_LABELS)
    add_dependencies(stint_concurrent_tests ${name})
  endif()
  list(GET arg_LABELS 0 first_label)
  # PRE_TEST: the build does not run binaries, which under a sanitizer would be slow.
  # The prefix keeps a suite apart that several programs run, such as a store contract.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX ${name}.
    PROPERTIES TIMEOUT 300 LABELS ${first_label})
  # gtest_discover_tests drops all but the first element of a list property (CMake 3.25), so that
  # further labels are set by a script that CTest reads after the discovered tests.
  list(LENGTH arg_LABELS count)
  if(count GREATER 1)
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(WRITE ${script} "if(${name}_TESTS)
  set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS \"${arg_LABELS}\")
endif()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
  endif()
endfunction()

# stint_suite(<name> SOURCES x_test.cc... [LABELS ...] [LIBS ...])
# The same, but all of it is one test of CTest and runs in one process: for suites that start many
# servers, and only once.
function(stint_suite name)
  if(NOT STINT_TESTS OR STINT_FUZZ)
    return()
  endif()
  _stint_parse(stint_suite "SOURCES;LABELS;LIBS")
  add_executable(${name} ${arg_SOURCES})
  _stint_inside(${name} GTest::gmock_main ${arg_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if("concurrent" IN_LIST arg_LABELS)
    add_dependencies(stint_concurrent_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600)
endfunction()

# stint_bench(<name> SOURCES x_bench.cc... [LIBS <target>...])
# A Google Benchmark program, run by `make bench`.
function(stint_bench name)
  if(NOT STINT_BENCH OR STINT_FUZZ)
    return()
  endif()
  _stint_parse(stint_bench "SOURCES;LIBS")
  add_executable(${name} ${arg_SOURCES})
  _stint_inside(${name} benchmark::benchmark_main ${arg_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  set_property(GLOBAL APPEND PROPERTY STINT_BENCHES ${name})
endfunction()

# stint_example(<name> SOURCES a.cc...)
# A program that uses the library as an outsider does: public headers and `stint::stint` only.
function(stint_example name)
  if(NOT STINT_EXAMPLES OR STINT_FUZZ)
    return()
  endif()
  _stint_parse(stint_example "SOURCES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE stint::stint stint_warnings)
endfunction()

# stint_fuzzer(<name> SOURCES x_fuzz.cc... [CORPUS <folder>])
# A libFuzzer program. Its test is a short run with a fixed seed; hunt by running it by hand.
function(stint_fuzzer name)
  if(NOT STINT_FUZZ)
    return()
  endif()
  _stint_parse(stint_fuzzer "SOURCES;CORPUS;LIBS")
  add_executable(${name} ${arg_SOURCES})
  _stint_inside(${name} ${arg_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  list(TRANSFORM arg_CORPUS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  # The first folder is where libFuzzer writes new inputs: never the one under version control.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz/${name}_corpus)
  add_test(NAME ${name}
    COMMAND ${name} -seed=1 -runs=100000 ${PROJECT_BINARY_DIR}/fuzz/${name}_corpus ${arg_CORPUS})
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 300)
endfunction()
