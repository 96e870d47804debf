# What the program stint is made of beside the library: network, HTTP, configuration, gateway.
include_guard()
stint_require_coroutine_compiler()

find_package(Boost 1.81.0 EXACT REQUIRED CONFIG COMPONENTS headers json)
find_package(OpenSSL 3 REQUIRED COMPONENTS SSL Crypto)
find_package(yaml-cpp REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(prometheus-cpp REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(ZLIB REQUIRED)
# These have no CMake packages. Brotli's encoder is for tests.
find_package(PkgConfig REQUIRED)
pkg_check_modules(STINT_HIREDIS REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(STINT_BROTLI REQUIRED IMPORTED_TARGET libbrotlidec)
pkg_check_modules(STINT_TCMALLOC REQUIRED IMPORTED_TARGET libtcmalloc_minimal)
if(STINT_TESTS)
  pkg_check_modules(STINT_BROTLI_ENCODER REQUIRED IMPORTED_TARGET libbrotlienc)
endif()

# Asio, its TLS and Beast compiled once; whoever includes them links this. A frame of a coroutine is
# allocated for every await: by plain operator new, which is several times as fast as aligned_alloc.
add_library(stint_asio STATIC cmake/asio.cc)
target_link_libraries(stint_asio PUBLIC Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
target_compile_definitions(stint_asio PUBLIC
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_DISABLE_FENCED_BLOCK BOOST_ASIO_DISABLE_STD_ALIGNED_ALLOC
  BOOST_ASIO_DISABLE_BOOST_ALIGN BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=1)

# stint_server_layer(<name> SOURCES a.cc... [DEPENDS <layer>...] [LIBS <target>...])
# One folder, one layer, one static library `stint_<name>`. DEPENDS names layers of the server;
# those of the library come with `stint`.
function(stint_server_layer name)
  _stint_parse(stint_server_layer "SOURCES;DEPENDS;LIBS")
  add_library(stint_${name} STATIC ${arg_SOURCES})
  target_link_libraries(stint_${name} PUBLIC stint stint_internal ${arg_LIBS})
  foreach(layer IN LISTS arg_DEPENDS)
    target_link_libraries(stint_${name} PUBLIC stint_${layer})
  endforeach()
endfunction()
