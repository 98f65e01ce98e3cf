# How this project builds: targets are folders, layers are enforced.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # time_macros and pch_defines: a precompiled header must not turn every compilation into a miss.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TROUPE_CCACHE})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

set(TROUPE_WARNINGS -Wall -Wextra -Werror)
set(TROUPE_SANITIZE "" CACHE STRING "empty, address (with undefined), or thread")
if(TROUPE_SANITIZE STREQUAL "address")
  # Not `null`: CAF 0.17 binds a reference to a null pointer, which nothing reads, when it spawns a function without arguments.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
  add_link_options(-fsanitize=address,undefined)
elseif(TROUPE_SANITIZE STREQUAL "thread")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=thread)
elseif(TROUPE_SANITIZE)
  message(FATAL_ERROR "TROUPE_SANITIZE is '${TROUPE_SANITIZE}': use address or thread")
endif()

if(TROUPE_SANITIZE)
  list(REMOVE_ITEM TROUPE_WARNINGS -Werror)  # GCC 12 warns of array bounds in the library's own strings under sanitizers
endif()

# Which folders a folder may use (docs/architecture.md): an upward link does not configure. scripts/check-orphans holds every #include,
# also those within a target, against the same table.
set(TROUPE_LAYER_core "")
set(TROUPE_LAYER_core/affinity core)
set(TROUPE_LAYER_strategies core)
set(TROUPE_LAYER_nn core)
set(TROUPE_LAYER_nn/onnx core nn)
set(TROUPE_LAYER_data core)
set(TROUPE_LAYER_strategies/coordination core strategies data)
set(TROUPE_LAYER_transport/security core)
set(TROUPE_LAYER_transport/net core transport/security)
set(TROUPE_LAYER_transport core transport/security transport/net)
set(TROUPE_LAYER_transport/inproc ${TROUPE_LAYER_transport} transport)
set(TROUPE_LAYER_transport/shm ${TROUPE_LAYER_transport/inproc})
set(TROUPE_LAYER_transport/tcp ${TROUPE_LAYER_transport/inproc})
set(TROUPE_LAYER_transport/fabric ${TROUPE_LAYER_transport/inproc})
set(TROUPE_LAYER_transport/device ${TROUPE_LAYER_transport/inproc})
set(TROUPE_LAYER_transport/ucx ${TROUPE_LAYER_transport/fabric} transport/fabric)  # a module of its own
set(TROUPE_LAYER_transport/mpi ${TROUPE_LAYER_transport/fabric} transport/fabric)
set(TROUPE_LAYER_transport/registry ${TROUPE_LAYER_transport/mpi} transport/inproc transport/shm transport/tcp transport/device transport/mpi)
set(TROUPE_LAYER_transport/exchange ${TROUPE_LAYER_transport/inproc})
set(TROUPE_LAYER_cpu core nn transport transport/inproc transport/exchange)
set(TROUPE_LAYER_gpu core nn)
set(TROUPE_LAYER_guest core nn)
set(TROUPE_LAYER_experiment core strategies nn data strategies/coordination transport transport/registry transport/exchange)
set(TROUPE_LAYER_experiment/report core strategies experiment)
set(TROUPE_LAYER_experiment/sweep core)
set(TROUPE_LAYER_experiment/plot core experiment/sweep)
set(TROUPE_LAYER_store ${TROUPE_LAYER_experiment} experiment)
set(TROUPE_LAYER_service/datasets ${TROUPE_LAYER_experiment} experiment)
set(TROUPE_LAYER_service/jobs ${TROUPE_LAYER_store} store)
set(TROUPE_LAYER_service/nodes core nn transport/security transport/net)
set(TROUPE_LAYER_service/http core transport/security transport/net)
set(TROUPE_LAYER_service ${TROUPE_LAYER_store} experiment/sweep store transport/security transport/net service/http service/jobs service/nodes service/datasets)
set(TROUPE_LAYER_sim/engine core)
set(TROUPE_LAYER_sim ${TROUPE_LAYER_experiment} experiment sim/engine)
set(TROUPE_LAYER_sim/explore core sim/engine strategies strategies/coordination data)
set(TROUPE_LAYER_sim/replay ${TROUPE_LAYER_experiment} experiment transport/inproc)
set(TROUPE_LAYER_actors/requests core)
set(TROUPE_LAYER_actors/protocol ${TROUPE_LAYER_experiment} experiment actors/requests)
set(TROUPE_LAYER_actors/control core transport/net transport/security actors/requests actors/protocol)
set(TROUPE_LAYER_actors core/affinity ${TROUPE_LAYER_actors/protocol} ${TROUPE_LAYER_transport/registry} transport/registry experiment/report actors/requests actors/protocol actors/control)
set(TROUPE_LAYER_apps/grid core strategies nn data experiment experiment/report)
set(TROUPE_LAYER_apps/sweep core strategies nn data experiment experiment/report experiment/sweep apps/grid)
set(TROUPE_LAYER_apps/bench ${TROUPE_LAYER_transport/registry} transport/registry transport/exchange)
set(TROUPE_LAYER_apps/fetch core transport/security transport/net)
set(TROUPE_LAYER_apps ${TROUPE_LAYER_actors} actors store service/http service/jobs service/nodes service/datasets service cpu gpu guest nn/onnx experiment/plot experiment/sweep sim sim/explore sim/replay apps/grid apps/sweep apps/bench apps/fetch)

# Headers that most sources include, parsed once for all of them. Fewer, and a source takes a second longer to compile; the compiler spends
# the rest of its time on what they instantiate.
set(TROUPE_COMMON_HEADERS
  <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex>
  <optional> <set> <span> <stdexcept> <string> <string_view> <thread> <tuple> <utility> <variant> <vector>
  <fmt/format.h> <fmt/ranges.h> <tl/expected.hpp>)

# troupe_headers(NAME [HEADERS <a> …] [LIBRARIES …]): precompiles the common headers and HEADERS, for targets of the same language flags.
function(troupe_headers name)
  cmake_parse_arguments(H "" "" "HEADERS;LIBRARIES" ${ARGN})
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/${TROUPE_HEADERS_SOURCE})
  target_link_libraries(${name} PRIVATE fmt::fmt tl::expected ${H_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${TROUPE_COMMON_HEADERS} ${H_HEADERS})
endfunction()

# Optimised little, and so compiled in two thirds of the time: code for which no run waits.
set(TROUPE_COMPILED_FAST $<$<CONFIG:Release>:-O1>)

# Sources are small, and most of a small source's compilation is what its headers instantiate: eight together take less than half the time.
# Therefore a name in an anonymous namespace is used once in a target. -DTROUPE_UNITY=OFF compiles
# each source alone. CMake leaves out sources with compiler options of their own (kernels).
option(TROUPE_UNITY "Compile the sources of a target together, eight by eight" ON)

function(troupe_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TROUPE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(TROUPE_UNITY)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # it means headers, and takes an included source for one
  endif()
endfunction()

# troupe_module(FOLDER SOURCES a.cpp … USES core … [LIBRARIES public…] [PRIVATE private…] [HEADERS name] [COMPILED_FAST]): folder a/b is the
# target troupe_a_b. HEADERS: what troupe_headers() precompiled for it.
function(troupe_module folder)
  cmake_parse_arguments(M "COMPILED_FAST" "HEADERS" "SOURCES;USES;LIBRARIES;PRIVATE" ${ARGN})
  foreach(used IN LISTS M_USES)
    if(NOT used IN_LIST TROUPE_LAYER_${folder})
      message(FATAL_ERROR "${folder}/ may not use ${used}/: see TROUPE_LAYER_${folder} in cmake/Troupe.cmake")
    endif()
  endforeach()
  string(REPLACE "/" "_" name ${folder})
  add_library(troupe_${name} STATIC ${M_SOURCES})
  target_include_directories(troupe_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(troupe_${name} PRIVATE ${TROUPE_WARNINGS})
  troupe_targets(used ${M_USES})
  target_link_libraries(troupe_${name} PUBLIC ${used} ${M_LIBRARIES} PRIVATE ${M_PRIVATE})
  if(M_HEADERS)
    target_precompile_headers(troupe_${name} REUSE_FROM ${M_HEADERS})
  endif()
  troupe_unity(troupe_${name})
  if(M_COMPILED_FAST)
    target_compile_options(troupe_${name} PRIVATE ${TROUPE_COMPILED_FAST})
  endif()
endfunction()

# troupe_targets(VARIABLE FOLDER…): the folders' targets.
function(troupe_targets variable)
  set(targets ${ARGN})
  list(TRANSFORM targets REPLACE "/" "_")
  list(TRANSFORM targets PREPEND troupe_)
  set(${variable} ${targets} PARENT_SCOPE)
endfunction()

# troupe_loadable(KIND [TARGET name] SOURCES a.cpp … LIBRARIES …): lib/troupe_KIND.so, the target name or troupe_KIND, which core/loading/module.cpp loads when it is asked to. It links
# nothing of ours: it lists the sources that it needs.
function(troupe_loadable kind)
  cmake_parse_arguments(L "" "TARGET" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT L_TARGET)
    set(L_TARGET troupe_${kind})
  endif()
  add_library(${L_TARGET} MODULE ${L_SOURCES})
  set_target_properties(${L_TARGET} PROPERTIES PREFIX "" OUTPUT_NAME troupe_${kind} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_include_directories(${L_TARGET} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${L_TARGET} PRIVATE ${TROUPE_WARNINGS})
  target_link_libraries(${L_TARGET} PRIVATE ${L_LIBRARIES} tl::expected fmt::fmt)
  set_property(GLOBAL APPEND PROPERTY TROUPE_LOADABLES ${L_TARGET})
endfunction()

# troupe_optional(KIND PACKAGE [COMPONENTS …]): finds what option TROUPE_KIND asks for: AUTO takes what there is, ON insists.
macro(troupe_optional kind package)
  set(TROUPE_${kind} AUTO CACHE STRING "Build the module for ${kind}: AUTO, ON or OFF")
  set_property(CACHE TROUPE_${kind} PROPERTY STRINGS AUTO ON OFF)
  if(TROUPE_${kind} STREQUAL "AUTO")
    find_package(${package} QUIET ${ARGN})
  elseif(TROUPE_${kind})
    find_package(${package} REQUIRED ${ARGN})
  endif()
endmacro()

# troupe_cuda_language(): sets TROUPE_GPU where all is there that builds the module of the GPU backend: nvcc, and the headers of cuDNN and
# cuBLASLt. Their libraries are needed where it runs only. Machine code for the data-centre GPUs of compute capability 8.0 and 9.0; later ones
# compile the PTX for 9.0 at their first start.
macro(troupe_cuda_language)
  set(TROUPE_GPU OFF)
  if(CUDAToolkit_FOUND)
    find_path(TROUPE_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
    find_path(TROUPE_CUBLAS_INCLUDE cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(TROUPE_CUDNN_INCLUDE AND TROUPE_CUBLAS_INCLUDE AND CUDAToolkit_NVCC_EXECUTABLE AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13.0)
      if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
      endif()
      if(NOT DEFINED CMAKE_CUDA_COMPILER)
        set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
      endif()
      if(TROUPE_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
        set(CMAKE_CUDA_COMPILER_LAUNCHER ${TROUPE_CCACHE})
      endif()
      enable_language(CUDA)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      endif()
      set(TROUPE_GPU ON)
    elseif(TROUPE_CUDA STREQUAL "ON")
      message(FATAL_ERROR "TROUPE_CUDA is ON: the GPU backend needs nvcc 13 or later, cudnn_graph.h (cuDNN 9) and cublasLt.h")
    endif()
  endif()
endmacro()

# troupe_tests(FOLDER SOURCES a_test.cpp … [USES core …] [LIBRARIES …] [HEADERS name] [PARTS n] [SECONDS s]): one test program. HEADERS: the
# precompiled ones, or none; without it tests_headers. PARTS: CTest runs it as n tests side by side, FOLDER_1 …; for programs that mostly wait.
# SECONDS: about how long it takes; CTest begins with the longest. Each leaves GoogleTest's results in test-results/ of the build directory.
function(troupe_tests name)
  cmake_parse_arguments(T "" "PARTS;SECONDS;HEADERS" "SOURCES;USES;LIBRARIES" ${ARGN})
  if(NOT T_HEADERS)
    set(T_HEADERS tests_headers)
  endif()
  add_executable(${name}_tests ${T_SOURCES})
  target_compile_options(${name}_tests PRIVATE ${TROUPE_WARNINGS} ${TROUPE_COMPILED_FAST})
  troupe_unity(${name}_tests)
  if(NOT T_HEADERS STREQUAL "none")
    target_precompile_headers(${name}_tests REUSE_FROM ${T_HEADERS})
  endif()
  troupe_targets(used ${T_USES})
  target_link_libraries(${name}_tests PRIVATE ${used} ${T_LIBRARIES} GTest::gtest GTest::gtest_main rapidcheck)
  target_compile_definitions(${name}_tests PRIVATE TROUPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TROUPE_BINARY="${CMAKE_BINARY_DIR}/bin/troupe")
  set(timeout 1800)
  if(TROUPE_SANITIZE)
    set(timeout 3600)
  endif()
  set(tests ${name})
  if(T_PARTS)
    set(tests)
    foreach(part RANGE 1 ${T_PARTS})
      list(APPEND tests ${name}_${part})
    endforeach()
  endif()
  set(index 0)
  foreach(test IN LISTS tests)
    add_test(NAME ${test} COMMAND ${name}_tests)
    set(environment "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/${test}.xml")
    if(T_PARTS)
      list(APPEND environment GTEST_TOTAL_SHARDS=${T_PARTS} GTEST_SHARD_INDEX=${index})
    endif()
    set_tests_properties(${test} PROPERTIES TIMEOUT ${timeout} ENVIRONMENT "${environment}")
    if(T_SECONDS)
      set_tests_properties(${test} PROPERTIES COST ${T_SECONDS})
    endif()
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()
