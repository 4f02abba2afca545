/*
 * zstd_null.c - no zstd: built instead of zstd.c where the library is not installed.
 */
#include "compress/codec.h"

const struct bz_codec *const bz_codec_zstd = NULL;
