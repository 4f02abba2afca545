#!/usr/bin/env python3
"""Foreign programs and our TLS examples: openssl s_client and curl against our servers, and our clients against
openssl s_server and nginx.

    tests/programs/tls_programs_test.py BUILD/examples [-v] [Class.test]

Missing programs are skipped and named (tools/setup net-programs installs all of them). BLITZ_IO and the like
are passed on to the examples, so the same is shown for every backend.
"""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

EXAMPLES = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir() else None
LIMIT_S = 60


def needs(*programs):
    missing = [p for p in programs if shutil.which(p) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def call(argv, **how):
    return subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=LIMIT_S, check=False, **how)


class Authority:
    """A certificate authority made by the openssl command."""

    def __init__(self, folder):
        self.at = folder
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2,
                     "-subj", "/CN=Test Root", "-keyout", "ca.key", "-out", "ca.pem")
        self.issue("good", "server.test")

    def openssl(self, *args):
        done = call(["openssl", *args], cwd=self.at)
        if done.returncode != 0:
            raise AssertionError(done.stderr.decode())

    def issue(self, name, host, days=("-days", 2), purpose="serverAuth", is_self_signed=False):
        (self.at / "ext").write_text(f"subjectAltName=DNS:{host},IP:127.0.0.1\nextendedKeyUsage={purpose}\n",
                                     encoding="ascii")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr")
        by = ["-signkey", f"{name}.key"] if is_self_signed else ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
        self.openssl("x509", "-req", "-in", f"{name}.csr", *by, *days, "-extfile", "ext", "-out", f"{name}.pem")

    def file(self, name):
        return self.at / name


def example(name):
    return EXAMPLES / f"example_{name}"


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="blitz-tls-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.ca = Authority(cls.scratch)

    def serving(self, name, *args):
        """An example as a server; its port."""
        server = subprocess.Popen([str(example(name)), *map(str, args)], stdout=subprocess.PIPE, text=True)
        self.enterContext(server)
        self.addCleanup(server.kill)
        return int(server.stdout.readline().split()[1])

    def cert(self, name="good"):
        return self.ca.file(f"{name}.pem"), self.ca.file(f"{name}.key")


@needs("openssl")
class Client(Case):
    """openssl s_client, against both forms of our echo server."""

    def s_client(self, port, *args, said=b"a line\n"):
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "server.test", "-CAfile",
                self.ca.file("ca.pem"), "-verify_return_error", "-verify_hostname", "server.test", "-quiet", *args]
        with subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as client:
            client.stdin.write(said)
            client.stdin.flush()
            heard = client.stdout.read(len(said)) if said else b""
            client.kill()
            return heard

    def test_s_client_is_echoed_by_each_version(self):
        for form in ("fiber", "task"):
            port = self.serving("tls_echo", form, *self.cert())
            for version in ("-tls1_2", "-tls1_3"):
                with self.subTest(f"{form} {version}"):
                    self.assertEqual(self.s_client(port, version), b"a line\n")
                    self.assertEqual(self.s_client(port, version, said=b"x" * 100000 + b"\n"), b"x" * 100000 + b"\n")

    def test_a_client_may_not_renegotiate(self):
        port = self.serving("tls_echo", "fiber", *self.cert())
        done = call(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_2", "-CAfile",
                     self.ca.file("ca.pem")], input=b"R\n")
        self.assertIn(b"no renegotiation", done.stderr.lower() + done.stdout.lower())

    def test_a_session_is_resumed(self):
        port = self.serving("tls_echo", "fiber", *self.cert())
        kept = self.scratch / "session"
        for version in ("-tls1_2", "-tls1_3"):
            argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", version, "-CAfile", self.ca.file("ca.pem")]
            with subprocess.Popen([str(a) for a in [*argv, "-sess_out", kept]], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as one:
                one.stdin.write(b"echo\n")
                one.stdin.flush()
                while one.stdout.readline() not in (b"echo\n", b""):
                    pass
                one.stdin.close()
                one.wait(LIMIT_S)
            again = call([*argv, "-sess_in", kept], input=b"")
            self.assertIn(b"Reused, ", again.stdout, version)

    def test_old_versions_are_refused(self):
        port = self.serving("tls_echo", "fiber", *self.cert())
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                how = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                how.check_hostname = False
                how.verify_mode = ssl.CERT_NONE
                how.set_ciphers("ALL:@SECLEVEL=0")
                how.minimum_version = how.maximum_version = version
            with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as raw:
                with self.assertRaises(ssl.SSLError) as refused, how.wrap_socket(raw):
                    pass
            self.assertIn("PROTOCOL_VERSION", str(refused.exception).upper().replace(" ", "_"))

    def test_a_hello_of_ssl_3_gets_an_alert(self):
        port = self.serving("tls_echo", "fiber", *self.cert())
        hello = b"\x03\x00" + bytes(32) + b"\x00" + b"\x00\x04\x00\x2f\x00\x35" + b"\x01\x00"
        message = b"\x01" + len(hello).to_bytes(3, "big") + hello
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as raw:
            raw.sendall(b"\x16\x03\x00" + len(message).to_bytes(2, "big") + message)
            answer = raw.recv(100)
        self.assertEqual(answer[:1], b"\x15", "not an alert")
        self.assertEqual(answer[5:6], b"\x02", "not a fatal one")


@needs("openssl", "curl")
class Curl(Case):
    """curl, against our web server."""

    def setUp(self):
        self.port = self.serving("https_hello", "serve", *self.cert())

    def curl(self, *args, ca="ca.pem", host="server.test"):
        return call(["curl", "-sS", "--max-time", 20, "--cacert", self.ca.file(ca), "--resolve",
                     f"{host}:{self.port}:127.0.0.1", *args, f"{'https:'}//{host}:{self.port}/"])

    def test_curl_says_hello_by_each_version(self):
        self.assertIn(b"hello by TLSv1.3", self.curl().stdout)
        self.assertIn(b"hello by TLSv1.2", self.curl("--tls-max", "1.2").stdout)

    def test_curl_that_prefers_http_2_gets_http_1(self):
        done = self.curl("--http2", "-o", os.devnull, "-w", "%{http_version}")
        self.assertEqual(done.stdout, b"1.1", done.stderr)

    def test_curl_keeps_its_connection(self):
        url = f"{'https:'}//server.test:{self.port}/"
        done = self.curl("-o", os.devnull, "-w", "%{num_connects}\n", url, "-o", os.devnull)
        self.assertEqual(done.stdout.split(), [b"1", b"0"], done.stderr)

    def test_curl_refuses_what_it_does_not_trust(self):
        self.assertEqual(self.curl(host="other.test").returncode, 60)
        self.ca.issue("odd", "server.test", is_self_signed=True)
        self.assertEqual(self.curl(ca="odd.pem").returncode, 60)

    def test_a_new_certificate_is_shown_without_a_restart(self):
        shutil.copy(self.ca.file("good.pem"), self.ca.file("kept.pem"))
        shutil.copy(self.ca.file("good.key"), self.ca.file("kept.key"))
        self.addCleanup(shutil.copy, self.ca.file("kept.pem"), self.ca.file("good.pem"))
        self.addCleanup(shutil.copy, self.ca.file("kept.key"), self.ca.file("good.key"))
        self.ca.issue("good", "renewed.test")
        for _ in range(LIMIT_S):
            if self.curl(host="renewed.test").returncode == 0:
                return
            time.sleep(0.5)  # lint: allow test-sleep: the example reads its files once a second
        self.fail("the new certificate was never shown")


class Server(Case):
    """Our clients against foreign servers."""

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            return free.getsockname()[1]

    def wait_for(self, server, port):
        for _ in range(500):
            self.assertIsNone(server.poll(), "the server did not start")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                return
            time.sleep(0.02)  # lint: allow test-sleep: the server does not say when it listens
        self.fail("the server does not listen")

    def s_server(self, name="good", *args):
        port = self.free_port()
        cert, key = self.cert(name)
        server = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", str(cert), "-key",
                                   str(key), "-www", *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.enterContext(server)
        self.addCleanup(server.kill)
        self.wait_for(server, port)
        return port

    def get(self, port, host="server.test", ca="ca.pem"):
        return call([example("https_hello"), "get", host, port, self.ca.file(ca)])

    @needs("openssl")
    def test_s_server_by_each_version(self):
        for version in ("-tls1_2", "-tls1_3"):
            port = self.s_server("good", version)
            done = self.get(port)
            self.assertIn(b"s_server", done.stdout, done.stderr)

    @needs("openssl")
    def test_bad_certificates_are_refused_with_words(self):
        self.ca.issue("old", "server.test", days=("-days", -1))
        self.ca.issue("self", "server.test", is_self_signed=True)
        self.ca.issue("mail", "server.test", purpose="emailProtection")
        self.ca.issue("other", "other.test")
        rows = (("old", "CN = old expired on"), ("self", "CN = self is signed by itself and not trusted"),
                ("mail", "CN = mail is made for another purpose"),
                ("other", 'CN = other is not for the host "server.test": it names other.test'))
        for name, words in rows:
            with self.subTest(name):
                done = self.get(self.s_server(name))
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, b"")
                self.assertIn(words, done.stderr.decode())

    @needs("openssl")
    def test_a_server_with_old_versions_alone_is_refused(self):
        done = self.get(self.s_server("good", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"versions of TLS", done.stderr)

    @needs("openssl")
    def test_a_server_without_tls_is_told_from_one(self):
        with socket.create_server(("127.0.0.1", 0)) as plain:
            client = subprocess.Popen([str(example("https_hello")), "get", "server.test",
                                       str(plain.getsockname()[1]), str(self.ca.file("ca.pem"))],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            one = plain.accept()[0]
            one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            one.close()
            said = client.communicate(timeout=LIMIT_S)[1]
        self.assertIn(b"does not speak TLS", said)

    @needs("openssl", "nginx")
    def test_nginx_sends_its_page(self):
        port = self.free_port()
        cert, key = self.cert()
        conf = f"""daemon off; master_process off; pid {self.scratch}/pid; error_log {self.scratch}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {self.scratch}; proxy_temp_path {self.scratch};
fastcgi_temp_path {self.scratch}; uwsgi_temp_path {self.scratch}; scgi_temp_path {self.scratch};
server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
location / {{ return 200 "by nginx and $ssl_protocol for $ssl_server_name\\n"; }} }} }}
"""
        (self.scratch / "conf").write_text(conf, encoding="ascii")
        server = subprocess.Popen(["nginx", "-c", str(self.scratch / "conf")], stderr=subprocess.DEVNULL)
        self.enterContext(server)
        self.addCleanup(server.kill)
        self.wait_for(server, port)
        done = self.get(port)
        self.assertIn(b"by nginx and TLSv1.", done.stdout, done.stderr)
        self.assertIn(b"for server.test", done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    if EXAMPLES is None:
        sys.exit(__doc__)
    unittest.main(verbosity=2)
