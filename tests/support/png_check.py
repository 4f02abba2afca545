#!/usr/bin/env python3
"""Is this file a PNG of one grey image, whole and with right check sums? Prints its size."""
import struct
import sys
import zlib


def chunks(data):
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body, crc = data[at + 8:at + 8 + size], data[at + 8 + size:at + 12 + size]
        assert struct.unpack(">I", crc)[0] == zlib.crc32(kind + body), kind
        yield kind, body
        at += 12 + size


def main(path):
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    found = dict(chunks(data))
    assert list(found) == [b"IHDR", b"IDAT", b"IEND"], list(found)
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    rows = zlib.decompress(found[b"IDAT"])
    assert len(rows) == height * (width + 1), "rows are missing"
    assert len(set(rows)) > 10, "an empty picture"
    print(f"a picture of {width} x {height}")


if __name__ == "__main__":
    main(sys.argv[1])
