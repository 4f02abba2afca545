# How every C file of ours is compiled. Anything a preset changes is a cache variable here:
#
#   BLITZ_WERROR     warnings are errors (ON in every preset of ours; OFF for packagers by default)
#   BLITZ_SANITIZE   "", "address,undefined" or "thread"
#   BLITZ_COVERAGE   count lines
#   BLITZ_PLAIN      the dull form of every protocol: no fast paths
#   BLITZ_WATCH      assertions, delay points and the checks of test builds in an optimized build, too
#   BLITZ_BREAK      a number: plant that bug (see tools/canaries)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # one set of objects serves both libraries
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(BLITZ_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(BLITZ_WERROR "Treat warnings as errors" OFF)
option(BLITZ_COVERAGE "Count executed lines" OFF)
option(BLITZ_PLAIN "Build the dull form of every protocol" OFF)
option(BLITZ_WATCH "Assertions and the checks of test builds in any build" OFF)
set(BLITZ_SANITIZE "" CACHE STRING "Sanitizers, as given to -fsanitize=")
set(BLITZ_BREAK "" CACHE STRING "Plant the bug of this number")

# Where the planted bug is: in a few of the library's sources, which alone are then compiled anew (a
# cache has the others), or, if a header or a test has it or the model checker compiles it, everywhere.
set(BLITZ_BREAK_IN "")
set(BLITZ_BREAK_EVERYWHERE OFF)
if(NOT BLITZ_BREAK STREQUAL "")
    file(GLOB_RECURSE candidates "${PROJECT_SOURCE_DIR}/src/*.[ch]" "${PROJECT_SOURCE_DIR}/include/*.h"
         "${PROJECT_SOURCE_DIR}/tests/*.[ch]")
    foreach(candidate IN LISTS candidates)
        file(STRINGS "${candidate}" found REGEX "BZ_BROKEN\\(${BLITZ_BREAK}\\)" LIMIT_COUNT 1)
        if(found AND candidate MATCHES "/src/.*[.]c$" AND NOT candidate MATCHES "/tests/")
            list(APPEND BLITZ_BREAK_IN "${candidate}")
        elseif(found)
            set(BLITZ_BREAK_EVERYWHERE ON)
        endif()
    endforeach()
    if(BLITZ_MODEL OR NOT BLITZ_BREAK_IN)
        set(BLITZ_BREAK_EVERYWHERE ON)
    endif()
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Flags for our own objects and for nobody who links with us.
add_library(blitz_flags INTERFACE)
target_compile_options(blitz_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef
    -Wwrite-strings -Wvla -fno-common -fno-omit-frame-pointer
    -fasynchronous-unwind-tables # not the default on riscv64; a stack can be walked from anywhere
    # A failed check says src/base/slab.c, wherever that was compiled, and builds are reproducible.
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_compile_definitions(blitz_flags INTERFACE
    _GNU_SOURCE=1 # only src/os, src/io and the tests use what it opens; tools/lint sees to that
    $<$<OR:$<CONFIG:Debug>,$<BOOL:${BLITZ_WATCH}>>:BZ_DEBUG=1>
    $<$<BOOL:${BLITZ_PLAIN}>:BZ_PLAIN=1>
    $<$<BOOL:${BLITZ_BREAK_EVERYWHERE}>:BZ_BREAK=${BLITZ_BREAK}>)
if(BLITZ_WERROR)
    target_compile_options(blitz_flags INTERFACE -Werror)
endif()
if(BLITZ_SANITIZE)
    target_compile_options(blitz_flags INTERFACE
        -fsanitize=${BLITZ_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(blitz_flags INTERFACE -fsanitize=${BLITZ_SANITIZE})
endif()
if(BLITZ_COVERAGE)
    target_compile_options(blitz_flags INTERFACE --coverage -fprofile-update=atomic)
    target_link_options(blitz_flags INTERFACE --coverage)
endif()

# How code is compiled that counts its steps (blitz/reductions.h).
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    set(BLITZ_REDUCTIONS_FLAGS -fsanitize-coverage=edge,trace-pc,no-prune)
else()
    set(BLITZ_REDUCTIONS_FLAGS -fsanitize-coverage=trace-pc)
endif()
# For the few files whose types debuggers need, whatever the build (src/sched/runtimes.c). Paths are cut
# as above.
set(BLITZ_DEBUG_TYPES -g -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${PROJECT_BINARY_DIR}=.)

include(BlitzCet)
