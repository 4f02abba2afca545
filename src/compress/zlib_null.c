/*
 * zlib_null.c - no gzip and no zlib: built instead of zlib.c where the library is not installed.
 */
#include "compress/codec.h"

const struct bz_codec *const bz_codec_zlib = NULL;
