# blitz_test(NAME SOURCES file... [LABELS label...] [ARGS argument...])
#
# Add a test program of the harness (docs/testing.md). CTest knows programs, not cases: the program runs each
# case in its own process with a time limit, and prints the command that repeats a failed case. Rejected: to
# register each case with CTest. That needs a run of the program after each build, or a second parser of the
# sources.
#
# CTest's time limit is for a harness that hangs; the harness itself ends a hanging case much sooner. The
# sanitizers' options are compiled into the harness (tests/harness/tune.c).
#
# The tests' own code is compiled with -O1 in a release build. Most of the time of such a build goes into them, and -O1
# takes a third of it away; the library that they test keeps its -O3 or -O2.
function(blitz_test name)
    cmake_parse_arguments(T "" "" "SOURCES;LABELS;ARGS" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE blitz_harness blitz_support blitz_sim blitz_internal blitz_flags)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
    set_tests_properties(${name} PROPERTIES
        LABELS "${T_LABELS}" TIMEOUT 1200
        SKIP_REGULAR_EXPRESSION "(^|\n)0 passed, 0 failed, [1-9]")
endfunction()
