# The installed libraries and the files installed with them.
#
#   BLITZ_SHARED    libblitz.so.0, target blitz::shared
#   BLITZ_STATIC    libblitz.a,    target blitz::static
#
# and with each libblitz-reductions, targets blitz::reductions-shared and blitz::reductions-static,
# which is a library of its own because of the name it defines (src/reductions).
#
# Likewise libblitz-compress, targets blitz::compress-shared and blitz::compress-static, if a compression library is
# installed (BlitzCompress.cmake).
#
# With BLITZ_DEBUG_LIBRARY also libblitz-debug, targets blitz::debug, blitz::debug-shared and
# blitz::debug-static: the same sources with assertions and the checks of test builds, to be linked
# instead of libblitz. The headers are the same.
#
# The default is both; BUILD_SHARED_LIBS selects one kind. blitz::blitz is the shared library if it is built.
# Both are made of blitz_objects, the same objects that our tests run.
#
# The soname changes with the binary interface: BLITZ_ABI below, and the symbol blitz_abi_N that the
# headers' inline functions refer to, change together.
include(CMakePackageConfigHelpers)

set(BLITZ_ABI 0)
set(default_shared ON)
set(default_static ON)
if(DEFINED BUILD_SHARED_LIBS)
    set(default_shared ${BUILD_SHARED_LIBS})
    if(BUILD_SHARED_LIBS)
        set(default_static OFF)
    endif()
endif()
option(BLITZ_SHARED "Build libblitz.so" ${default_shared})
option(BLITZ_STATIC "Build libblitz.a" ${default_static})
if(NOT BLITZ_SHARED AND NOT BLITZ_STATIC)
    message(FATAL_ERROR "blitz: BLITZ_SHARED and BLITZ_STATIC are both OFF; nothing is left to build")
endif()

add_custom_target(blitz_libraries)
set(libraries "")

# blitz_library(NAME EXPORT_NAME): the settings that both kinds share.
function(blitz_library name export_name)
    target_include_directories(${name} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME blitz EXPORT_NAME ${export_name})
    add_library(blitz::${export_name} ALIAS ${name})
    add_dependencies(blitz_libraries ${name})
endfunction()

# blitz_reductions(NAME EXPORT_NAME KIND ON): libblitz-reductions of that kind, on that libblitz.
function(blitz_reductions name export_name kind on)
    add_library(${name} ${kind} ${PROJECT_SOURCE_DIR}/src/reductions/reductions.c)
    blitz_library(${name} ${export_name})
    set_target_properties(${name} PROPERTIES OUTPUT_NAME blitz-reductions)
    get_target_property(compile_options blitz_flags INTERFACE_COMPILE_OPTIONS)
    target_compile_options(${name} PRIVATE ${compile_options})
    target_link_libraries(${name} PUBLIC ${on})
endfunction()

# blitz_compress(NAME EXPORT_NAME KIND ON): libblitz-compress of that kind, on that libblitz.
function(blitz_compress name export_name kind on)
    add_library(${name} ${kind} ${BLITZ_COMPRESS_SOURCES})
    blitz_library(${name} ${export_name})
    set_target_properties(${name} PROPERTIES OUTPUT_NAME blitz-compress)
    get_target_property(compile_options blitz_flags INTERFACE_COMPILE_OPTIONS)
    target_compile_options(${name} PRIVATE ${compile_options})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PUBLIC ${on} PRIVATE ${BLITZ_COMPRESS_NAMES})
endfunction()

if(BLITZ_SHARED)
    add_library(blitz_shared SHARED $<TARGET_OBJECTS:blitz_objects>)
    blitz_library(blitz_shared shared)
    set_target_properties(blitz_shared PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION ${BLITZ_ABI}
        LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/blitz.map)
    # Taken one by one: a library linked here, even privately, would have to be exported too.
    get_target_property(link_options blitz_flags INTERFACE_LINK_OPTIONS)
    if(link_options)
        target_link_options(blitz_shared PRIVATE ${link_options})
    endif()
    if(NOT WIN32) # a DLL exports what its declarations say
        target_link_options(blitz_shared PRIVATE
            -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/blitz.map -Wl,--as-needed -Wl,--gc-sections)
    endif()
    if(NOT BLITZ_SANITIZE AND NOT WIN32) # the sanitizer's runtime is linked into the program
        target_link_options(blitz_shared PRIVATE -Wl,-z,defs)
    endif()
    target_link_libraries(blitz_shared PRIVATE Threads::Threads ${BLITZ_SYSTEM})
    list(APPEND libraries blitz_shared)
    blitz_reductions(blitz_reductions_shared reductions-shared SHARED blitz_shared)
    set(map ${CMAKE_CURRENT_SOURCE_DIR}/reductions/reductions.map)
    set_target_properties(blitz_reductions_shared PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION ${BLITZ_ABI} LINK_DEPENDS ${map})
    if(link_options)
        target_link_options(blitz_reductions_shared PRIVATE ${link_options})
    endif()
    if(NOT WIN32)
        target_link_options(blitz_reductions_shared PRIVATE -Wl,--version-script=${map})
    endif()
    list(APPEND more_libraries blitz_reductions_shared)
    if(BLITZ_COMPRESS)
        blitz_compress(blitz_compress_shared compress-shared SHARED blitz_shared)
        set(map ${CMAKE_CURRENT_SOURCE_DIR}/compress/compress.map)
        set_target_properties(blitz_compress_shared PROPERTIES
            VERSION ${PROJECT_VERSION} SOVERSION ${BLITZ_ABI} LINK_DEPENDS ${map})
        if(link_options)
            target_link_options(blitz_compress_shared PRIVATE ${link_options})
        endif()
        target_link_options(blitz_compress_shared PRIVATE -Wl,--version-script=${map})
        list(APPEND compress_libraries blitz_compress_shared)
    endif()
endif()
if(BLITZ_STATIC)
    add_library(blitz_static STATIC $<TARGET_OBJECTS:blitz_objects>)
    blitz_library(blitz_static static)
    if(WIN32)
        target_compile_definitions(blitz_static INTERFACE BLITZ_STATIC=1)
    endif()
    target_link_libraries(blitz_static PUBLIC Threads::Threads ${BLITZ_SYSTEM})
    list(APPEND libraries blitz_static)
    blitz_reductions(blitz_reductions_static reductions-static STATIC blitz_static)
    list(APPEND more_libraries blitz_reductions_static)
    if(BLITZ_COMPRESS)
        blitz_compress(blitz_compress_static compress-static STATIC blitz_static)
        list(APPEND compress_libraries blitz_compress_static)
    endif()
endif()

option(BLITZ_DEBUG_LIBRARY "Build libblitz-debug, with assertions, as well" OFF)
set(debug_libraries "")
if(BLITZ_DEBUG_LIBRARY)
    get_target_property(sources blitz_objects SOURCES)
    get_target_property(definitions blitz_objects COMPILE_DEFINITIONS)
    add_library(blitz_debug_objects OBJECT ${sources})
    target_include_directories(blitz_debug_objects PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(blitz_debug_objects PRIVATE ${definitions} BZ_DEBUG=1)
    target_compile_options(blitz_debug_objects PRIVATE -UNDEBUG -O1 -g)
    target_link_libraries(blitz_debug_objects PRIVATE blitz_flags)
    if(BLITZ_SHARED)
        add_library(blitz_debug_shared SHARED $<TARGET_OBJECTS:blitz_debug_objects>)
        blitz_library(blitz_debug_shared debug-shared)
        set_target_properties(blitz_debug_shared PROPERTIES
            OUTPUT_NAME blitz-debug VERSION ${PROJECT_VERSION} SOVERSION ${BLITZ_ABI})
        if(link_options)
            target_link_options(blitz_debug_shared PRIVATE ${link_options})
        endif()
        target_link_options(blitz_debug_shared PRIVATE
            -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/blitz.map -Wl,--as-needed -Wl,--gc-sections)
        target_link_libraries(blitz_debug_shared PRIVATE Threads::Threads ${BLITZ_SYSTEM})
        list(APPEND debug_libraries blitz_debug_shared)
    endif()
    if(BLITZ_STATIC)
        add_library(blitz_debug_static STATIC $<TARGET_OBJECTS:blitz_debug_objects>)
        blitz_library(blitz_debug_static debug-static)
        set_target_properties(blitz_debug_static PROPERTIES OUTPUT_NAME blitz-debug)
        target_link_libraries(blitz_debug_static PUBLIC Threads::Threads ${BLITZ_SYSTEM})
        list(APPEND debug_libraries blitz_debug_static)
    endif()
    add_library(blitz_debug INTERFACE)
    add_library(blitz::debug ALIAS blitz_debug)
    set_target_properties(blitz_debug PROPERTIES EXPORT_NAME debug)
    list(GET debug_libraries 0 first)
    target_link_libraries(blitz_debug INTERFACE ${first})
    list(APPEND debug_libraries blitz_debug)
endif()

add_library(blitz INTERFACE)
add_library(blitz::blitz ALIAS blitz)
list(GET libraries 0 first)
target_link_libraries(blitz INTERFACE ${first})
add_library(blitz_reductions INTERFACE)
add_library(blitz::reductions ALIAS blitz_reductions)
set_target_properties(blitz_reductions PROPERTIES EXPORT_NAME reductions)
list(GET more_libraries 0 first)
target_link_libraries(blitz_reductions INTERFACE ${first})
if(BLITZ_COMPRESS)
    add_library(blitz_compress INTERFACE)
    add_library(blitz::compress ALIAS blitz_compress)
    set_target_properties(blitz_compress PROPERTIES EXPORT_NAME compress)
    list(GET compress_libraries 0 first)
    target_link_libraries(blitz_compress INTERFACE ${first})
    list(APPEND compress_libraries blitz_compress)
endif()

if(NOT BLITZ_INSTALL)
    return()
endif()

install(TARGETS blitz blitz_reductions ${libraries} ${more_libraries} ${compress_libraries} ${debug_libraries} EXPORT blitz-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/blitz.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7
    COMPONENT development)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/blitz-trace DESTINATION ${CMAKE_INSTALL_BINDIR}
    COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/blitz-trace.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    COMPONENT development)

install(FILES ${PROJECT_SOURCE_DIR}/tools/gdb/blitz.py DESTINATION ${CMAKE_INSTALL_DATADIR}/blitz/gdb
    COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/blitz)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/blitz-config.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/blitz-config.cmake INSTALL_DESTINATION ${package_dir}
    NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor release may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/blitz-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/blitz-config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/blitz-config-version.cmake
    DESTINATION ${package_dir} COMPONENT development)
install(EXPORT blitz-targets NAMESPACE blitz:: DESTINATION ${package_dir} COMPONENT development)

set(pc_atomic "")
if(BLITZ_ATOMIC)
    set(pc_atomic " -latomic")
endif()

# blitz.pc derives its prefix from its own location, so that an installed tree can be moved. A libdir or
# includedir that was given as an absolute path stays one.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
    set(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
    file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(pc_prefix "\${pcfiledir}/${up}")
    set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
    set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(pcs blitz.pc blitz-reductions.pc)
if(BLITZ_COMPRESS)
    list(APPEND pcs blitz-compress.pc)
endif()
if(BLITZ_DEBUG_LIBRARY)
    list(APPEND pcs blitz-debug.pc)
endif()
foreach(pc ${pcs})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${pc}.in ${CMAKE_CURRENT_BINARY_DIR}/${pc} @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${pc}
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
