"""An object store on 127.0.0.1 that speaks as much of S3, Google Cloud Storage and the Hugging Face
Hub as reading takes, and that can be made to fail."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ACCESS_KEY, SECRET_KEY, TOKEN = "AKIALVDETTEST", "s3cr3t-of-the-test", "hf_t0ken-of-the-test"
_DATE, _GMT = "2026-01-01T00:00:00.000Z", "Thu, 01 Jan 2026 00:00:00 GMT"
_COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Request:
    """What was asked: "GET", "HEAD" or "LIST", the key with its bucket, and the bytes of it."""

    verb: str
    key: str
    span: tuple[int, int] | None = None


@dataclass
class ObjectStore:
    """Objects by bucket and key, and what was asked for.

    fault: called with each request; a number is answered as an HTTP status, a negative one as
        silence of so many seconds before the connection breaks
    pace:  seconds that an answer takes, and seconds per byte
    """

    port: int = 0
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    fault: Callable[[Request], float | None] = lambda request: None
    pace: tuple[float, float] = (0.0, 0.0)
    most_at_once: int = 0
    _at_once: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the clients find it."""
        address = f"http://127.0.0.1:{self.port}"
        return {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "CLOUD_STORAGE_EMULATOR_ENDPOINT": address,
            "HF_ENDPOINT": address,
            "HF_TOKEN": TOKEN,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }

    def spans(self, ending: str = "") -> list[tuple[int, int]]:
        """The bytes that were asked for of keys that end so."""
        return [
            one.span for one in self.requests if one.span is not None and one.key.endswith(ending)
        ]

    def below(self, folder: str) -> tuple[list[str], list[str]]:
        """The keys in a folder, and the folders in it."""
        keys = sorted(key for key in self.objects if key.startswith(folder))
        direct = [key for key in keys if "/" not in key[len(folder) :]]
        rest = [key[len(folder) :].partition("/")[0] for key in keys if key not in direct]
        return direct, sorted({folder + name + "/" for name in rest})

    @contextmanager
    def answering(self) -> Iterator[None]:
        with self._guard:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._guard:
                self._at_once -= 1


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A store that is there until the end of the block."""
    store = ObjectStore()
    handler = type("Handler", (_Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    store.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one packet for a small answer: two would wait for each other
    store: ObjectStore

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        path = unquote(address.path)
        with suppress(BrokenPipeError, ConnectionResetError), self.store.answering():
            if path.startswith("/storage/v1/b/"):
                self._google(address.path, query)
            elif path.startswith(("/api/", "/datasets/")):
                self._hub(path, query)
            else:
                self._amazon(path.lstrip("/"), query)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def _amazon(self, key: str, query: dict[str, str]) -> None:
        bucket = key.partition("/")[0]
        listing = "list-type" in query
        folder = f"{bucket}/{query.get('prefix', '')}"
        if self._failing(Request("LIST" if listing else self.command, folder if listing else key)):
            return
        refused = self._signature_problem()
        if refused is not None:
            self._send(403, _error(refused, "It is not said here why."), "application/xml")
        elif not any(one.startswith(bucket + "/") for one in self.store.objects):
            self._send(404, _error("NoSuchBucket", "No such bucket"), "application/xml")
        elif listing:
            self._send(200, self._listing(bucket, folder, query), "application/xml")
        elif "/" not in key:
            self._send(200)
        else:
            self._object(key, missing=_error("NoSuchKey", "No such key"))

    def _listing(self, bucket: str, folder: str, query: dict[str, str]) -> bytes:
        """A page of at most three keys, so that listings have several."""
        if "delimiter" in query:
            keys, folders = self.store.below(folder)
        else:
            keys, folders = sorted(k for k in self.store.objects if k.startswith(folder)), []
        after = query.get("continuation-token", "")
        page = [key for key in keys if key > after][:3]
        more = bool(page) and page[-1] != keys[-1]
        text = f"<Name>{bucket}</Name><IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            text += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        for key in page:
            name, size = escape(key.partition("/")[2]), len(self.store.objects[key])
            text += f"<Contents><Key>{name}</Key><Size>{size}</Size><ETag>e</ETag>"
            text += f"<LastModified>{_DATE}</LastModified></Contents>"
        for one in [] if after else folders:
            name = escape(one.partition("/")[2])
            text += f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"
        return f'<?xml version="1.0"?><ListBucketResult>{text}</ListBucketResult>'.encode()

    def _signature_problem(self) -> str | None:
        """What AWS would answer; the signature is computed as it documents."""
        said = self.headers.get("Authorization", "")
        if not said.startswith("AWS4-HMAC-SHA256 "):
            return "AccessDenied"
        parts = dict(one.split("=", 1) for one in said.partition(" ")[2].split(", "))
        name, *scope = parts["Credential"].split("/")
        if name != ACCESS_KEY:
            return "InvalidAccessKeyId"
        address = urlsplit(self.path)
        pairs = sorted(parse_qsl(address.query, keep_blank_values=True))
        lines = [
            self.command,
            address.path,
            "&".join(f"{quote(a, safe='-_.~')}={quote(b, safe='-_.~')}" for a, b in pairs),
            *(
                f"{one}:{' '.join((self.headers.get(one) or '').split())}"
                for one in parts["SignedHeaders"].split(";")
            ),
            "",
            parts["SignedHeaders"],
            self.headers["x-amz-content-sha256"],
        ]
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], "/".join(scope), digest])
        key = b"AWS4" + SECRET_KEY.encode()
        for part in (*scope, text):
            key = hmac.digest(key, part.encode(), "sha256")
        return None if key.hex() == parts["Signature"] else "SignatureDoesNotMatch"

    def _google(self, path: str, query: dict[str, str]) -> None:
        bucket, _, rest = path.removeprefix("/storage/v1/b/").partition("/")
        known = any(one.startswith(bucket + "/") for one in self.store.objects)
        key = f"{bucket}/{unquote(rest.removeprefix('o/'))}"
        folder = f"{bucket}/{query.get('prefix', '')}"
        listing = rest == "o"
        if self._failing(Request("LIST" if listing else self.command, folder if listing else key)):
            return
        missing = json.dumps({"error": {"code": 404, "message": "Not Found"}}).encode()
        if not known:
            self._send(404, missing)
        elif listing:
            if "delimiter" in query:
                keys, folders = self.store.below(folder)
            else:
                keys = sorted(one for one in self.store.objects if one.startswith(folder))
                folders = []
            found = {
                "kind": "storage#objects",
                "items": [self._described(one) for one in keys],
                "prefixes": [one.partition("/")[2] for one in folders],
            }
            self._send(200, json.dumps(found).encode())
        elif not rest:
            self._send(200, json.dumps({"kind": "storage#bucket", "name": bucket}).encode())
        elif key not in self.store.objects or query.get("alt") == "media":
            self._object(key, missing=missing)
        else:
            self._send(200, json.dumps(self._described(key)).encode())

    def _described(self, key: str) -> dict[str, Any]:
        bucket, _, name = key.partition("/")
        content = self.store.objects[key]
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": name,
            "size": str(len(content)),
            "generation": str(int(_tag(content)[:8], 16)),
            "etag": _tag(content),
            "updated": f"2026-01-01T00:00:00.{int(_tag(content)[:5], 16) % 1000:03}Z",
            "timeCreated": _DATE,
        }

    def _hub(self, path: str, query: dict[str, str]) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if path == "/api/agent-harnesses":
            self._send(200, b"[]")
            return
        path = path.removeprefix("/api/")
        parts = path.strip("/").split("/")
        key, what = "/".join(parts[:3]), parts[3] if len(parts) > 3 else ""
        name = "/".join(parts[5:])
        folder = f"{key}/{name}/" if name else f"{key}/"
        verb = {"tree": "LIST", "resolve": self.command}.get(what, "INFO")
        if self._failing(Request(verb, f"{key}/{name}")):
            return
        missing = json.dumps({"error": "Repository not found"}).encode()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, json.dumps({"error": "Invalid credentials"}).encode())
        elif not any(one.startswith(key + "/") for one in self.store.objects):
            self._send(404, missing, headers={"X-Error-Code": "RepoNotFound"})
        elif what == "tree":
            keys, folders = self.store.below(folder)
            if query.get("recursive") in ("true", "True"):
                keys, folders = sorted(k for k in self.store.objects if k.startswith(folder)), []
            found = [self._entry(key, one) for one in keys]
            found += [
                {"type": "directory", "oid": _COMMIT, "path": one[len(key) + 1 : -1], "size": 0}
                for one in folders
            ]
            if found:
                self._send(200, json.dumps(found).encode())
            else:
                self._send(404, missing, headers={"X-Error-Code": "EntryNotFound"})
        elif what == "paths-info":
            asked = [value for name, value in parse_qsl(body.decode()) if name == "paths"]
            names = [f"{key}/{one}" for one in asked]
            found = [self._entry(key, one) for one in names if one in self.store.objects]
            self._send(200, json.dumps(found).encode())
        elif what == "resolve":
            self._object(
                f"{key}/{name}", missing=missing, headers={"X-Error-Code": "EntryNotFound"}
            )
        else:
            about = {"id": "/".join(parts[1:3]), "sha": _COMMIT, "siblings": []}
            self._send(200, json.dumps(about).encode())

    def _entry(self, repository: str, key: str) -> dict[str, Any]:
        content = self.store.objects[key]
        return {
            "type": "file",
            "oid": _tag(content),
            "size": len(content),
            "path": key[len(repository) + 1 :],
        }

    def _failing(self, request: Request) -> bool:
        """Notes the request; fails if it is to."""
        span = self.headers.get("Range")
        if span is not None:
            begin, _, end = span.removeprefix("bytes=").partition("-")
            request = Request(request.verb, request.key, (int(begin), int(end or -2) + 1))
        self.store.requests.append(request)
        fault = self.store.fault(request)
        if fault is None:
            return False
        if fault < 0:
            time.sleep(-fault)
            self.close_connection = True
        else:
            self._send(int(fault), b"")
        return True

    def _object(self, key: str, *, missing: bytes, headers: dict[str, str] | None = None) -> None:
        content = self.store.objects.get(key)
        if content is None:
            self._send(404, missing, headers=headers)
            return
        said = {"ETag": f'"{_tag(content)}"', "Last-Modified": _GMT, "Accept-Ranges": "bytes"}
        said["X-Repo-Commit"] = _COMMIT
        status, span = 200, self.headers.get("Range")
        if span is not None:
            begin, _, end = span.removeprefix("bytes=").partition("-")
            status, whole = 206, len(content)
            content = content[int(begin) : int(end) + 1 if end else None]
            said["Content-Range"] = f"bytes {begin}-{int(begin) + len(content) - 1}/{whole}"
            if not content:
                self._send(416)
                return
        self._send(status, content, headers=said)

    def _send(
        self,
        status: int,
        content: bytes = b"",
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        latency, per_byte = self.store.pace
        sent = b"" if self.command == "HEAD" else content
        if latency or per_byte:
            time.sleep(latency + per_byte * len(sent))
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(sent)


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _error(code: str, message: str) -> bytes:
    text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return f'<?xml version="1.0"?>{text}'.encode()


@contextmanager
def served_elsewhere(objects: dict[str, bytes], failing: int = 0) -> Iterator[dict[str, str]]:
    """A store in a process of its own, where the first requests for each object fail; yields the
    variables by which the clients find it. Arrow waits for Google without letting go of the
    interpreter, so that a server in the same one could not answer."""
    command = [sys.executable, "-m", "files.object_store", str(failing)]
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | paths
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(objects, process.stdin)
            process.stdin.flush()
            yield ObjectStore(port=int(process.stdout.readline())).environment
        finally:
            process.kill()


def _serve(failing: int) -> None:
    asked: Counter[str] = Counter()

    with object_store() as store:
        store.objects.update(pickle.load(sys.stdin.buffer))

        def fault(request: Request) -> float | None:
            asked[request.key] += 1
            early = request.key in store.objects and asked[request.key] <= failing
            return (-0.01, 503)[asked[request.key] % 2] if early else None

        store.fault = fault
        print(store.port, flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
