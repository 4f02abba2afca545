# blitz_optional(NAME ...): a library of its own beside libblitz, built where its dependency is.
#
#   blitz_optional(tls SOURCES a.c b.c MAP tls.map LINK OpenSSL::SSL DEPENDS "OpenSSL 3")
#
# makes libblitz-NAME: blitz::NAME-shared, blitz::NAME-static, blitz::NAME (the shared one if it is built), and
# blitz_NAME_internal, the same objects on blitz_internal, for our tests and examples. It installs cmake/blitz-NAME.pc.in
# as blitz-NAME.pc, and blitz-NAME.cmake, which find_package(blitz COMPONENTS NAME) includes: it looks for DEPENDS, the
# arguments of find_dependency(), and defines the targets. The targets of libblitz need none of that.
include(CMakePackageConfigHelpers)

function(blitz_optional name)
    cmake_parse_arguments(O "" "MAP;DEPENDS" "SOURCES;LINK" ${ARGN})
    set(objects blitz_${name}_objects)
    add_library(${objects} OBJECT ${O_SOURCES})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${objects} PRIVATE BLITZ_BUILDING=1)
    target_link_libraries(${objects} PRIVATE blitz_flags ${O_LINK})

    add_library(blitz_${name}_internal STATIC $<TARGET_OBJECTS:${objects}>)
    target_link_libraries(blitz_${name}_internal PUBLIC blitz_internal ${O_LINK})

    set(libraries "")
    foreach(kind shared static)
        string(TOUPPER ${kind} KIND)
        if(NOT BLITZ_${KIND})
            continue()
        endif()
        set(library blitz_${name}_${kind})
        add_library(${library} ${KIND} $<TARGET_OBJECTS:${objects}>)
        blitz_library(${library} ${name}-${kind})
        set_target_properties(${library} PROPERTIES OUTPUT_NAME blitz-${name})
        target_link_libraries(${library} PUBLIC blitz_${kind} PRIVATE ${O_LINK})
        list(APPEND libraries ${library})
    endforeach()
    if(BLITZ_SHARED)
        set_target_properties(blitz_${name}_shared PROPERTIES
            VERSION ${PROJECT_VERSION} SOVERSION ${BLITZ_ABI} LINK_DEPENDS ${O_MAP})
        get_target_property(link_options blitz_flags INTERFACE_LINK_OPTIONS)
        if(link_options)
            target_link_options(blitz_${name}_shared PRIVATE ${link_options})
        endif()
        target_link_options(blitz_${name}_shared PRIVATE -Wl,--version-script=${O_MAP} -Wl,--as-needed)
        if(NOT BLITZ_SANITIZE) # the sanitizer's runtime is linked into the program
            target_link_options(blitz_${name}_shared PRIVATE -Wl,-z,defs)
        endif()
    endif()
    add_library(blitz_${name} INTERFACE)
    add_library(blitz::${name} ALIAS blitz_${name})
    set_target_properties(blitz_${name} PROPERTIES EXPORT_NAME ${name})
    list(GET libraries 0 first)
    target_link_libraries(blitz_${name} INTERFACE ${first})
    if(BLITZ_INSTALL)
        blitz_optional_install(${name} "${O_DEPENDS}" blitz_${name} ${libraries})
    endif()
endfunction()

function(blitz_optional_install name depends)
    install(TARGETS ${ARGN} EXPORT blitz-${name}-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
    install(EXPORT blitz-${name}-targets NAMESPACE blitz:: DESTINATION ${package_dir} COMPONENT development)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/blitz-${name}.cmake
        "find_dependency(${depends})\ninclude(\"\${CMAKE_CURRENT_LIST_DIR}/blitz-${name}-targets.cmake\")\n")
    configure_file(${PROJECT_SOURCE_DIR}/cmake/blitz-${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/blitz-${name}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/blitz-${name}.cmake DESTINATION ${package_dir} COMPONENT development)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/blitz-${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
