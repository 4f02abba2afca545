# How every C file of ours is compiled. Anything a preset changes is a cache variable here:
#
#   BLITZ_WERROR     warnings are errors (ON in every preset of ours; OFF for packagers by default)
#   BLITZ_SANITIZE   "", "address,undefined" or "thread"
#   BLITZ_COVERAGE   count lines
#   BLITZ_PLAIN      the plain form of every protocol: no fast paths
#   BLITZ_WATCH      assertions, delay points and the checks of test builds in an optimized build, too
#   BLITZ_SCALE      every access calls the simulated machine of tests/scale; builds nothing but `make scale`
#   BLITZ_BREAK      plant every bug of tests/canaries; BLITZ_BROKEN=n chooses one at run time

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
option(BLITZ_SCALE "Build the simulated machine of many CPUs instead of the library" OFF)
option(BLITZ_BREAK "Plant the bugs of tests/canaries" OFF)
set(BLITZ_SANITIZE "" CACHE STRING "Sanitizers, as given to -fsanitize=")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# The compiler makes programs for another CPU or another C library than this machine's. So the C++ compiler and the
# libraries that CMake finds here are of no use.
set(BLITZ_FOREIGN OFF)
if(CMAKE_CROSSCOMPILING OR CMAKE_C_COMPILER MATCHES "musl-gcc$")
    set(BLITZ_FOREIGN ON)
endif()

# riscv64 has no compare-and-swap of a byte, and gcc before 13 calls libatomic for it.
include(CheckCSourceCompiles)
check_c_source_compiles("
#include <stdatomic.h>
int main(int n, char **v)
{
    _Atomic unsigned char byte = 0;
    unsigned char seen = (unsigned char)n;
    (void)v;
    return atomic_compare_exchange_strong(&byte, &seen, 1);
}" BLITZ_HAS_BYTE_CAS)
set(BLITZ_ATOMIC "")
if(NOT BLITZ_HAS_BYTE_CAS)
    set(BLITZ_ATOMIC atomic)
endif()

# The libraries that blitz needs besides the C library and threads.
set(BLITZ_SYSTEM ${BLITZ_ATOMIC})
if(WIN32)
    set(BLITZ_SYSTEM synchronization bcrypt ws2_32 mswsock ntdll)
endif()

# Flags for our own objects; programs that link with blitz do not inherit them.
add_library(blitz_flags INTERFACE)
target_compile_options(blitz_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef
    -Wwrite-strings -Wvla -fno-common -fno-omit-frame-pointer
    -fasynchronous-unwind-tables # not the default on riscv64; a stack can be walked from anywhere
    # A failed check says src/base/slab.c, wherever that was compiled, and builds are reproducible.
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_compile_definitions(blitz_flags INTERFACE
    _GNU_SOURCE=1 # only src/os, src/io, src/sim and the tests use its functions; tools/lint checks this
    $<$<OR:$<CONFIG:Debug>,$<BOOL:${BLITZ_WATCH}>>:BZ_DEBUG=1>
    $<$<BOOL:${BLITZ_PLAIN}>:BZ_PLAIN=1>)
if(WIN32)
    target_compile_definitions(blitz_flags INTERFACE _WIN32_WINNT=0x0A00 WIN32_LEAN_AND_MEAN=1)
endif()
if(BLITZ_BREAK) # before everything else that a source reads
    target_compile_options(blitz_flags INTERFACE
        "SHELL:-include ${PROJECT_SOURCE_DIR}/tests/canaries/broken.h")
endif()
if(BLITZ_WERROR)
    target_compile_options(blitz_flags INTERFACE -Werror)
endif()
if(BLITZ_SANITIZE)
    target_compile_options(blitz_flags INTERFACE
        -fsanitize=${BLITZ_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(blitz_flags INTERFACE -fsanitize=${BLITZ_SANITIZE})
endif()
if(BLITZ_SCALE) # ThreadSanitizer's calls without its runtime: tests/scale/hooks.c has the functions
    target_compile_options(blitz_flags INTERFACE
        -fsanitize=thread -U__SANITIZE_THREAD__ --param=tsan-instrument-func-entry-exit=0 -Wno-tsan -g)
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
# For the few files whose types debuggers need, whatever the build (src/runtime/runtimes.c). Paths are cut
# as above.
set(BLITZ_DEBUG_TYPES -g -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${PROJECT_BINARY_DIR}=.)

include(BlitzCet)
