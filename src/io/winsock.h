/*
 * winsock.h - sockets of Windows: its headers, and its errors as ours. Private to the files of src/io for Windows.
 */
#ifndef BZ_IO_WINSOCK_H
#define BZ_IO_WINSOCK_H

#include <winsock2.h>

#include <ws2tcpip.h>

#include <mswsock.h>

#include <windows.h>

#include <winternl.h>

/* Their words are names of ours. */
#undef near
#undef far
#undef interface

/* The errno of an error of a call on sockets. */
int bz_winsock_error(int error);
/* A negative errno: that of the last call. */
int bz_winsock_failed(void);

#endif
