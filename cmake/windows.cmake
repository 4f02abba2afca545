# Windows programs on x86_64, compiled on Linux by mingw-w64 and run by Wine: the toolchain of the preset `windows`.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Programs and libraries bring the compiler's libraries with them.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
# Debian's wine64 is not on the PATH. Wine reports what it lacks, and looks for a browser and .NET at its first start; neither is
# of interest.
find_program(BLITZ_WINE NAMES wine64 wine PATHS /usr/lib/wine) # lint: allow place: Debian puts it there
if(BLITZ_WINE)
    set(CMAKE_CROSSCOMPILING_EMULATOR
        env WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml= DISPLAY= ${BLITZ_WINE})
endif()
