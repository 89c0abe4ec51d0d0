"""What deploy/nginx.conf does with the answers of two replicas: 503 takes none of them out for others and is no reason to send a
request again, a replica that is gone is passed over, a write is sent once, and a client does not say whether it came by TLS."""

import http.client
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen = []


class Replica(BaseHTTPRequestHandler):
    """Answers by the path."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        seen.append((self.command, self.path, self.headers.get("X-Forwarded-Proto"), self.headers.get("Host")))
        if self.path == "/broken":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(503 if self.path == "/busy" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def main():
    replicas = [ThreadingHTTPServer(("127.0.0.1", 0), Replica) for _ in range(2)]
    for replica in replicas:
        threading.Thread(target=replica.serve_forever, daemon=True).start()
    port, gone = free_port(), free_port()
    here = [replica.server_port for replica in replicas]
    with tempfile.TemporaryDirectory() as folder:

        def run(ports):
            """Starts nginx with these replicas."""
            text = pathlib.Path(sys.argv[1]).read_text()
            (server,) = [line for line in text.splitlines() if line.strip().startswith("server toolrack:8480")]
            servers = "\n".join(server.replace("toolrack:8480", f"127.0.0.1:{at}") for at in ports)
            text = text.replace(server, servers).replace("/tmp/nginx.pid", f"{folder}/nginx.pid")
            text = text.replace("listen 8080;", f"listen 127.0.0.1:{port};")
            # Its folders may be another user's.
            kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
            text = text.replace("access_log off;", f"access_log off; {paths}")
            path = pathlib.Path(folder, "nginx.conf")
            path.write_text(text)
            command = ["nginx", "-e", f"{folder}/error.log", "-c", str(path), "-g", "daemon off;"]
            nginx = subprocess.Popen(command)
            for _ in range(200):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        return nginx
                assert nginx.poll() is None, "nginx ended"
                time.sleep(0.05)
            raise AssertionError("nginx does not listen")

        def ask(method, path, headers=None):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                body = b"{}" if method in ("POST", "PUT") else None
                connection.request(method, path, body=body, headers=headers or {})
                return connection.getresponse().status
            finally:
                connection.close()

        def sent(method, path):
            before = len(seen)
            status = ask(method, path)
            return status, len(seen) - before

        nginx = run(here)
        try:
            for _ in range(50):
                assert ask("GET", "/busy") == 503
                assert ask("GET", "/fine") == 200, "others are served"
            for method in ("GET", "POST", "PUT", "DELETE"):
                assert sent(method, "/busy") == (503, 1), f"{method} is not sent again because of an answer"
                assert sent(method, "/fine") == (200, 1)
            for method in ("POST", "PUT", "DELETE"):
                assert sent(method, "/broken") == (502, 1), f"{method} may have been carried out"
            assert sent("GET", "/broken")[1] == 2, "a GET is tried elsewhere"
            assert ask("GET", "/fine") == 200, "whatever broke"
            ask("GET", "/fine", {"X-Forwarded-Proto": "https", "Host": "rack.example"})
            assert seen[-1] == ("GET", "/fine", "http", "rack.example"), seen[-1]
        finally:
            end(nginx)
        nginx = run([here[0], gone])
        try:
            for method in ("GET", "POST") * 10:
                assert sent(method, "/fine") == (200, 1), "a replica that is gone is passed over"
        finally:
            end(nginx)


def end(nginx):
    """Ends the master, which ends its workers."""
    os.kill(nginx.pid, signal.SIGTERM)
    nginx.wait(timeout=30)


main()
