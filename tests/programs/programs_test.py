#!/usr/bin/env python3
"""Foreign programs against our examples: nc and socat talk to echo, curl and wrk to http, and our client to
nginx.

    tests/programs/programs_test.py BUILD/examples [-v] [Class.test]

Missing programs are skipped and named (tools/setup net-programs installs all of them). BLITZ_IO and the like
are passed on to the examples, so the same is shown for every backend.
"""

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

EXAMPLES = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir() else None
LIMIT_S = 60


def needs(*programs):
    missing = [p for p in programs if shutil.which(p) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def call(argv, **how):
    return subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=LIMIT_S, check=False, **how)


@contextlib.contextmanager
def serving(name, *args):
    """An example as a server; its port."""
    with subprocess.Popen([str(EXAMPLES / f"example_{name}"), *map(str, args)], stdout=subprocess.PIPE,
                          text=True) as server:
        try:
            yield int(server.stdout.readline().split()[1])
            if server.poll() is not None:
                raise AssertionError(f"{name} ended with {server.returncode}")
        finally:
            server.kill()


def noise(size):
    return b"".join(hashlib.sha256(i.to_bytes(8, "big")).digest() for i in range(size // 32 + 1))[:size]


class Echo(unittest.TestCase):
    """Both forms; a megabyte and more goes through before the other side has read any of it."""

    forms = ("fiber", "task")

    def both(self, argv_of, size):
        for form in self.forms:
            with self.subTest(form), serving("echo", form) as port:
                said = noise(size)
                heard = call(argv_of(port), input=said)
                self.assertEqual(heard.returncode, 0, heard.stderr)
                self.assertEqual(len(heard.stdout), size)
                self.assertEqual(heard.stdout, said)

    @needs("nc")
    def test_nc_a_line(self):
        self.both(lambda port: ["nc", "-N", "127.0.0.1", port], 100)

    @needs("nc")
    def test_nc_a_megabyte(self):
        self.both(lambda port: ["nc", "-N", "127.0.0.1", port], 1 << 20)

    @needs("socat")
    def test_socat_half_closes_and_gets_everything(self):
        self.both(lambda port: ["socat", "-t20", "-", f"TCP:127.0.0.1:{port}"], 8 << 20)

    @needs("socat")
    def test_socat_a_byte_at_a_time(self):
        self.both(lambda port: ["socat", "-t20", "-b1", "-", f"TCP:127.0.0.1:{port},nodelay"], 2000)

    @needs("socat")
    def test_many_at_once(self):
        for form in self.forms:
            with self.subTest(form), serving("echo", form) as port:
                said = noise(100000)
                running = [subprocess.Popen(["socat", "-t20", "-", f"TCP:127.0.0.1:{port}"],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(20)]
                for one in running:
                    self.assertEqual(one.communicate(said, timeout=LIMIT_S)[0], said)


class Http(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="blitz-programs-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "index.html").write_bytes(b"<p>hello</p>\n")
        (self.folder / "large.bin").write_bytes(noise(5000000))
        (self.folder / "empty.txt").write_bytes(b"")
        (self.folder / ".secret").write_bytes(b"no")
        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "a b.txt").write_bytes(b"spaced")
        self.port = self.enterContext(serving("http", self.folder))

    def url(self, path):
        return f"{'http:'}//127.0.0.1:{self.port}{path}"

    def curl(self, *args, path="/"):
        return call(["curl", "-sS", "--max-time", 20, *args, self.url(path)])

    def status(self, *args, path="/"):
        return self.curl(*args, "-o", os.devnull, "-w", "%{http_code}", path=path).stdout.decode()

    @needs("curl")
    def test_curl_gets_files_as_they_are(self):
        self.assertEqual(self.curl().stdout, b"<p>hello</p>\n")
        self.assertEqual(self.curl(path="/large.bin").stdout, noise(5000000))
        self.assertEqual(self.curl(path="/sub/a%20b.txt").stdout, b"spaced")
        self.assertEqual((self.status(path="/empty.txt"), self.curl(path="/empty.txt").stdout), ("200", b""))

    @needs("curl")
    def test_curl_keeps_its_connection(self):
        urls = [self.url("/"), self.url("/large.bin"), self.url("/nothing"), self.url("/")]
        done = call(["curl", "-sS", "-w", "connects=%{num_connects}\n"]
                    + [word for url in urls for word in ("-o", os.devnull, url)])
        self.assertEqual(done.stdout.decode().split(), ["connects=1"] + 3 * ["connects=0"])

    @needs("curl")
    def test_curl_head_has_the_length_and_no_body(self):
        head = self.curl("-I", path="/large.bin").stdout.decode()
        self.assertIn("Content-Length: 5000000\r\n", head)
        self.assertTrue(head.endswith("\r\n\r\n"))

    @needs("curl")
    def test_curl_does_not_get_what_has_not_changed(self):
        kept = self.folder / "sub" / "a b.txt"
        changed = self.curl("-I", path="/sub/a%20b.txt").stdout.decode().split("Last-Modified: ")[1].split("\r\n")[0]
        self.assertEqual(self.status("-H", f"If-Modified-Since: {changed}", path="/sub/a%20b.txt"), "304")
        os.utime(kept, (1, 1))
        self.assertEqual(self.status("-H", f"If-Modified-Since: {changed}", path="/sub/a%20b.txt"), "200")

    @needs("curl")
    def test_curl_is_refused_what_is_not_its_own(self):
        for path in ("/nothing", "/.secret", "/../etc/passwd", "/sub/../../etc/passwd", "/%2e%2e/etc/passwd", "/sub"):
            self.assertEqual(self.status("--path-as-is", path=path), "404", path)
        self.assertEqual(self.status("-X", "DELETE"), "405")
        self.assertEqual(self.status("-d", "x=1"), "413")

    @needs("curl")
    def test_curl_of_version_1_0(self):
        self.assertEqual(self.curl("-0").stdout, b"<p>hello</p>\n")

    def test_a_client_that_sends_byte_by_byte_and_one_that_sends_ahead(self):
        request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as c:
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(len(request)):
                c.sendall(request[i:i + 1])
            c.sendall(request * 20 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            got = b"".join(iter(lambda: c.recv(65536), b""))
        self.assertEqual(got.count(b"HTTP/1.1 200 OK\r\n"), 22)
        self.assertEqual(got.count(b"<p>hello</p>\n"), 22)

    @needs("wrk")
    def test_wrk(self):
        done = call(["wrk", "-t1", "-c50", "-d2s", self.url("/")])
        said = done.stdout.decode()
        self.assertEqual(done.returncode, 0, said)
        self.assertRegex(said, r"[1-9]\d* requests in")
        self.assertNotRegex(said, "Socket errors|Non-2xx")
        print("wrk:", next(line.strip() for line in said.splitlines() if "requests in" in line))


CONF = """
daemon off;
master_process off;
pid {scratch}/pid;
error_log {scratch}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {scratch};
    proxy_temp_path {scratch};
    fastcgi_temp_path {scratch};
    uwsgi_temp_path {scratch};
    scgi_temp_path {scratch};
    server {{ listen 127.0.0.1:{port}; root {scratch}/files; }}
    server {{ listen unix:{scratch}/socket; root {scratch}/files; }}
}}
"""


@needs("nginx")
class Nginx(unittest.TestCase):
    """Our client, a server nobody here wrote."""

    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="blitz-nginx-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        (self.scratch / "files").mkdir()
        (self.scratch / "files" / "page.html").write_bytes(b"<p>from nginx</p>\n")
        (self.scratch / "files" / "large.bin").write_bytes(noise(3000000))
        os.chmod(self.scratch, 0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (self.scratch / "conf").write_text(CONF.format(scratch=self.scratch, port=self.port), encoding="utf-8")
        server = self.enterContext(subprocess.Popen(["nginx", "-c", str(self.scratch / "conf")],
                                                    stderr=subprocess.DEVNULL))
        self.addCleanup(server.kill)
        self.wait_for(server)

    def wait_for(self, server):
        for _ in range(500):
            self.assertIsNone(server.poll(), "nginx did not start")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return
            time.sleep(0.02)  # lint: allow test-sleep: nginx does not say when it listens
        self.fail("nginx does not listen")

    def fetch(self, path, at=None):
        return call([EXAMPLES / "example_fetch", at or f"127.0.0.1:{self.port}", path])

    def test_pages_come_as_they_are(self):
        self.assertEqual(self.fetch("/page.html").stdout, b"<p>from nginx</p>\n")
        self.assertEqual(self.fetch("/large.bin").stdout, noise(3000000))

    def test_by_a_unix_socket(self):
        self.assertEqual(self.fetch("/page.html", f"unix:{self.scratch}/socket").stdout, b"<p>from nginx</p>\n")

    def test_what_is_not_there_is_told(self):
        done = self.fetch("/nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"404", done.stderr)


if __name__ == "__main__":
    if EXAMPLES is None:
        sys.exit(__doc__)
    unittest.main(verbosity=2)
