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
# A file still names what it uses: the debug preset builds without.
function(attend_precompile name)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # What ccache needs to see through them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# attend_compile_together(NAME): all sources of a target as one, which parses the large headers (JSON,
# GoogleTest, CLI11) and makes what comes of their templates once: a third of the time. Whoever works
# on one file of them builds with ATTEND_TOGETHER off.
function(attend_compile_together name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${ATTEND_TOGETHER}
    UNITY_BUILD_BATCH_SIZE 0)
endfunction()

# attend_objects(NAME SOURCE...): objects that go into the library.
function(attend_objects name)
  add_library(${name} OBJECT ${ARGN})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE attend_flags)
endfunction()

configure_file(cmake/exported.map.in exported.map @ONLY)

# attend_library(TARGET SHARED|STATIC [NAME NAME] OBJECTS TARGET... [NEEDS TARGET...]): a library of
# these objects, also as attend::TARGET. Who links the shared one needs nothing else; the static one
# brings its dependencies along.
function(attend_library target kind)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "OBJECTS;NEEDS")
  if(NOT arg_NAME)
    set(arg_NAME ${target})
  endif()
  list(TRANSFORM arg_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(${target} ${kind} ${objects})
  add_library(attend::${target} ALIAS ${target})
  string(REGEX REPLACE "^attend_text" "text" export_name ${target})
  # Until 1.0 a minor version may change the interface, and then has another name.
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_NAME} EXPORT_NAME ${export_name}
    LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:attend_flags>)
  if(kind STREQUAL SHARED)
    list(TRANSFORM arg_NEEDS REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")
    # Hidden visibility keeps attend's inside to itself; the script also what comes of templates.
    set(map ${attend_BINARY_DIR}/exported.map)
    # -Xlinker: LINKER: makes -Wl of it, which would cut the name of a folder at its commas.
    target_link_options(${target} PRIVATE "SHELL:-Xlinker \"--version-script=${map}\"")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
  endif()
  target_link_libraries(${target} PRIVATE ${arg_NEEDS})
endfunction()
