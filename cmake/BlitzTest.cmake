# blitz_test(NAME SOURCES file... [LABELS label...] [ARGS argument...])
#
# A test program of the harness (docs/testing.md). CTest knows programs, not cases: a program gives
# each of its cases a process and a time limit anyway, and prints the command that repeats one that
# failed. To register the cases would need either a run of the program after each build, which fails
# to build what fails to start, or a second reader of the sources, which would one day disagree with
# the compiler.
#
# CTest's time limit is there for a harness that hangs; a case that does is ended much sooner. The
# sanitizers' options are compiled into the harness (tests/harness/tune.c).
function(blitz_test name)
    cmake_parse_arguments(T "" "" "SOURCES;LABELS;ARGS" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE blitz_harness blitz_internal blitz_flags)
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
    set_tests_properties(${name} PROPERTIES
        LABELS "${T_LABELS}" TIMEOUT 1200
        SKIP_REGULAR_EXPRESSION "(^|\n)0 passed, 0 failed, [1-9]")
endfunction()
