# libblitz-compress: which of the compression libraries are installed, and which sources that makes.
#
#   BLITZ_COMPRESS           ON if at least one is there, and it was not turned off
#   BLITZ_COMPRESS_SOURCES   the sources of the library
#   BLITZ_COMPRESS_NAMES     the libraries to link, by name: consumers of a static libblitz-compress need them, too
option(BLITZ_COMPRESS "Build libblitz-compress where zlib or libzstd is installed" ON)
# With a cross compiler the header of this machine may be found, but the library is for another CPU: link with it.
include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES z)
check_symbol_exists(inflate zlib.h BLITZ_HAS_ZLIB)
set(CMAKE_REQUIRED_LIBRARIES zstd)
check_symbol_exists(ZSTD_decompressStream zstd.h BLITZ_HAS_ZSTD)
unset(CMAKE_REQUIRED_LIBRARIES)
set(folder ${CMAKE_CURRENT_SOURCE_DIR}/compress)
set(BLITZ_COMPRESS_SOURCES ${folder}/compress.c)
set(BLITZ_COMPRESS_NAMES "")
foreach(name zlib zstd)
    string(TOUPPER ${name} upper)
    if(BLITZ_HAS_${upper})
        list(APPEND BLITZ_COMPRESS_SOURCES ${folder}/${name}.c)
        string(REPLACE zlib z link ${name})
        list(APPEND BLITZ_COMPRESS_NAMES ${link})
    else()
        list(APPEND BLITZ_COMPRESS_SOURCES ${folder}/${name}_null.c)
    endif()
endforeach()
if(NOT BLITZ_HAS_ZLIB AND NOT BLITZ_HAS_ZSTD)
    set(BLITZ_COMPRESS OFF)
endif()
list(TRANSFORM BLITZ_COMPRESS_NAMES PREPEND -l OUTPUT_VARIABLE flags)
list(JOIN flags " " BLITZ_COMPRESS_LIBS)
set(BLITZ_COMPRESS ${BLITZ_COMPRESS} PARENT_SCOPE)
set(BLITZ_COMPRESS_SOURCES ${BLITZ_COMPRESS_SOURCES} PARENT_SCOPE)
set(BLITZ_COMPRESS_NAMES ${BLITZ_COMPRESS_NAMES} PARENT_SCOPE)
