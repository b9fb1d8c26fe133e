# How attend's targets are made: one place for flags, none of them global.

add_library(attend_flags INTERFACE)
target_compile_features(attend_flags INTERFACE cxx_std_20)
target_include_directories(attend_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_compile_options(attend_flags INTERFACE
  -march=x86-64-v2 -fvisibility=hidden -fvisibility-inlines-hidden -ffp-contract=off
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=."
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  # g++ 12 sees overlapping copies inside std::string where there are none.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${ATTEND_WERROR}>:-Werror>)
# Highway's static target must be the floor, not one lane wide; every kernel is dispatched above it.
target_compile_definitions(attend_flags INTERFACE HWY_DISABLE_PCLMUL_AES
  ATTEND_VERSION="${PROJECT_VERSION}")
if(ATTEND_SANITIZE)
  target_compile_options(attend_flags INTERFACE
    -fsanitize=${ATTEND_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(attend_flags INTERFACE -fsanitize=${ATTEND_SANITIZE})
endif()
if(ATTEND_COVERAGE)
  target_compile_options(attend_flags INTERFACE --coverage)
  target_link_options(attend_flags INTERFACE --coverage)
endif()

# attend_precompile(NAME HEADER...): heads that nearly every file of a target includes, parsed once.
# A file still names what it uses: CI's sanitizer build runs without.
function(attend_precompile name)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # What ccache needs to see through them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# attend_objects(NAME SOURCE...): objects that go into the library.
function(attend_objects name)
  add_library(${name} OBJECT ${ARGN})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE attend_flags)
endfunction()

# attend_library(NAME SHARED|STATIC): the whole library, also as attend::NAME. Who links the shared
# one needs nothing else; the static one brings its dependencies along.
function(attend_library name kind)
  add_library(${name} ${kind} $<TARGET_OBJECTS:attend_kernels> $<TARGET_OBJECTS:attend_text>
              $<TARGET_OBJECTS:attend_engine>)
  add_library(attend::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME attend LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION 0)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:attend_flags>)
  set(needs DNNL::dnnl hwy::hwy Threads::Threads OpenMP::OpenMP_CXX)
  if(kind STREQUAL SHARED)
    list(TRANSFORM needs REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")
  endif()
  target_link_libraries(${name} PRIVATE ${needs})
endfunction()
