#!/usr/bin/env python3
"""The load generator of bench-tls: starts a TLS server, loads it, and prints what that cost.

    bench/tls/load.py KIND FOLDER CASE --seconds=S

KIND is blitz, blitz_task, openssl (s_server) or nginx; FOLDER has our programs. The server runs on CPU 0 with one
worker, this program on CPU 1. Prints the server's CPU time for a message, kernel included, in microseconds:

    line-1     one connection sends lines of 64 bytes, each when the answer to the last one is back
    https-64   64 connections that stay open ask for a short page: wrk, a program that is not ours
    full-8     8 clients, a connection and a full handshake for each page: wrk again
"""
import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NGINX = """daemon off; master_process off; worker_processes 1; pid {at}/pid; error_log {at}/log;
events {{ worker_connections 512; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {at}; proxy_temp_path {at};
fastcgi_temp_path {at}; uwsgi_temp_path {at}; scgi_temp_path {at};
server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
location / {{ default_type text/plain; return 200 "hello by $ssl_protocol, $ssl_cipher\\n"; }} }} }}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def certificate(at):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                    at / "key.pem", "-out", at / "cert.pem"], check=True, stderr=subprocess.DEVNULL)


def command(kind, folder, case, at, port):
    is_line = case.startswith("line")
    files = [str(at / "cert.pem"), str(at / "key.pem"), str(port)]
    if kind in ("blitz", "blitz_task"):
        form = "task" if kind == "blitz_task" else "fiber"
        return [f"{folder}/tls_echo_blitz", form, *files] if is_line else [f"{folder}/tls_https_blitz", "serve", *files]
    if kind == "openssl":
        return ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", files[0], "-key", files[1], "-quiet",
                "-rev"]
    (at / "conf").write_text(NGINX.format(at=at, port=port), encoding="ascii")
    return ["nginx", "-c", str(at / "conf")]


@contextlib.contextmanager
def serving(argv, port):
    env = dict(os.environ, BLITZ_PROCS="1")
    with subprocess.Popen(["taskset", "-c", "0", *argv], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(500):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.01)
            yield server.pid
        finally:
            server.kill()


def cpu_ns(pid):
    return sum(int(p.read_text(encoding="ascii").split()[0]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def lines(port, seconds, at):
    how = ssl.create_default_context(cafile=str(at / "cert.pem"))
    text = b"x" * 63 + b"\n"
    with socket.create_connection(("127.0.0.1", port)) as raw, how.wrap_socket(raw, server_hostname="localhost") as tls:
        tls.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            tls.sendall(text)
            got = 0
            while got < len(text):
                got += len(tls.recv(4096))
            count += 1
        return count


def pages(port, seconds, is_full):
    more = ["-c8", "-H", "Connection: close"] if is_full else ["-c64"]
    done = subprocess.run(["wrk", "-t1", *more, f"-d{max(1, round(seconds))}s", f"{'https:'}//127.0.0.1:{port}/"],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    return int(re.search(r"(\d+) requests in", done).group(1))


def load(case, port, seconds, at):
    return lines(port, seconds, at) if case == "line-1" else pages(port, seconds, case == "full-8")


def main():
    kind, folder, case, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4].split("=")[1])
    at, port = Path(tempfile.mkdtemp(prefix="blitz-bench-tls-")), free_port()
    try:
        certificate(at)
        os.sched_setaffinity(0, {1})
        with serving(command(kind, folder, case, at, port), port) as pid:
            load(case, port, seconds / 4, at)
            before = cpu_ns(pid)
            count = load(case, port, seconds, at)
            print(f"{case} {(cpu_ns(pid) - before) / 1000 / max(count, 1):.4f}")
            print(f"# {count} messages")
    finally:
        shutil.rmtree(at, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main()
