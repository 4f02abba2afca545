# blitz_test(NAME SOURCES file... [LABELS label...])
#
# A test program of the harness. CTest runs the whole program (which gives each of its cases a
# process of its own); `NAME --list` and `NAME CASE` serve whoever wants one.
function(blitz_test name)
    cmake_parse_arguments(T "" "" "SOURCES;LABELS;ARGS" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE blitz_harness blitz_internal blitz_flags)
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT 600)
endfunction()
