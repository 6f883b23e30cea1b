"""The stores that remote files are read from: S3, Google Cloud Storage and the Hugging Face Hub.

Each is reached by an existing client, which takes credentials from its usual places.
"""

from __future__ import annotations

import logging
import os
import random
import re
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

from lvdet.errors import InputError
from lvdet.extras import extra

#: Seconds between the attempts of a request; each is varied at random by half.
PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Seconds until a connection or an answer is given up.
TIMEOUT = 20.0
#: What these say of themselves where their credentials are looked for.
_CREDENTIALS = {
    "s3": "AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, gcloud auth application-default login, or a role",
    "hf": "HF_TOKEN, or hf auth login",
}
_DENIED = (
    "ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|INVALID_SIGNATURE|"
    "INVALID_CLIENT_TOKEN_ID|UNRECOGNIZED_CLIENT|MISSING_AUTHENTICATION_TOKEN|PERMISSION_DENIED|"
    r"UNAUTHENTICATED|OAuth2|HTTP status 40[13]\b|InvalidToken"
)
_MISSING = r"NO_SUCH_KEY|NO_SUCH_BUCKET|RESOURCE_NOT_FOUND|NOT_FOUND|HTTP status 404\b"
T = TypeVar("T")


class Stored(NamedTuple):
    """An object: its size, what changes whenever its content does, and a reader of (begin,
    count) that any thread may call."""

    size: int
    version: str
    read: Callable[[int, int], bytes]


class StoreError(Exception):
    """A request failed: for good ("missing", "no bucket", "denied") or perhaps not ("passing")."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


class Store(Protocol):
    """A store. Keys begin with the bucket; failures are `StoreError`."""

    def open(self, key: str) -> Stored:
        """An object, by one request."""
        ...

    def files(self, folder: str, *, deep: bool) -> list[tuple[str, int]]:
        """The keys and sizes of the objects in a folder; if deep, also in those below."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The keys of the folders in a folder."""
        ...


def open_stored(address: str) -> Stored:
    """The object at an address; its reader retries too."""
    _, key = _split(address)
    store = _store(address)
    stored = _persist(address, lambda: store.open(key))

    def read(begin: int, count: int) -> bytes:
        content = _persist(address, lambda: stored.read(begin, count))
        if len(content) != count:
            raise InputError(f"{address}: ends at byte {begin + len(content):,}; did it change?")
        return content

    return Stored(stored.size, stored.version, read)


def list_stored(folder: str, *, deep: bool = False) -> list[tuple[str, int]]:
    """The addresses and sizes of the objects in a folder; if deep, also in those below."""
    scheme, key = _split(folder)
    store = _store(folder)
    found = _persist(folder, lambda: store.files(key.rstrip("/"), deep=deep))
    return [(f"{scheme}://{name}", size) for name, size in found]


def list_folders(folder: str) -> list[str]:
    """The addresses of the folders in a folder."""
    scheme, key = _split(folder)
    store = _store(folder)
    found = _persist(folder, lambda: store.folders(key.rstrip("/")))
    return [f"{scheme}://{name}" for name in found]


def _split(address: str) -> tuple[str, str]:
    scheme, _, key = address.partition("://")
    return scheme, key


def _persist(address: str, act: Callable[[], T]) -> T:
    """The outcome of a request, tried again where another attempt may succeed."""
    for pause in (*PAUSES, None):
        try:
            return act()
        except StoreError as failure:
            if failure.kind != "passing" or pause is None:
                raise InputError(f"{address}: {_sentence(address, failure)}") from None
        time.sleep(pause * random.uniform(0.5, 1.5))
    raise AssertionError  # the last attempt returns or raises


def _sentence(address: str, failure: StoreError) -> str:
    scheme, key = _split(address)
    if failure.kind == "missing":
        return "no such file"
    if failure.kind == "no bucket":
        return f"no such bucket: {key.partition('/')[0]}"
    detail = f" ({failure.detail})" if failure.detail else ""
    if failure.kind == "denied":
        return f"access denied{detail}; credentials are taken from {_CREDENTIALS[scheme]}"
    return f"cannot read it after {len(PAUSES) + 1} attempts{detail}"


def _store(address: str) -> Store:
    scheme, key = _split(address)
    if scheme == "hf":
        return _hub()
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return _bucket_store(scheme, key.partition("/")[0], endpoint, address)


@lru_cache(maxsize=16)
def _bucket_store(scheme: str, bucket: str, endpoint: str | None, address: str) -> Store:
    with extra("remote", f"reading {address}"):
        from pyarrow import fs
    if scheme == "gs":
        emulated = "CLOUD_STORAGE_EMULATOR_ENDPOINT" in os.environ
        # Attempts are made here, for all stores alike.
        brief = timedelta(milliseconds=1)
        return _ArrowStore(fs, fs.GcsFileSystem(anonymous=emulated, retry_time_limit=brief))
    region = None
    if endpoint is None:
        try:
            region = fs.resolve_s3_region(bucket)
        except OSError:  # said by the first request
            region = None
    once = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    return _ArrowStore(
        fs,
        fs.S3FileSystem(
            region=region,
            endpoint_override=endpoint,
            connect_timeout=TIMEOUT,
            request_timeout=TIMEOUT,
            retry_strategy=once,
        ),
    )


class _ArrowStore:
    """S3 or Google Cloud Storage, by Arrow."""

    def __init__(self, fs: Any, system: Any) -> None:
        self._fs, self._system = fs, system

    def open(self, key: str) -> Stored:
        def act() -> Stored:
            size, version, file = self._opened(key)
            return Stored(
                size,
                version,
                lambda begin, count: self._try(key, lambda: bytes(file.read_at(count, begin))),
            )

        return self._try(key, act)

    def _opened(self, key: str) -> tuple[int, str, Any]:
        """The size, the version and the content of an object."""
        if self._system.type_name == "s3":
            file = self._system.open_input_file(key)
            said = file.metadata()
            return file.size(), f"{said.get('ETag')} {said.get('Last-Modified')}", file
        # Asked for its size or metadata, a file of Google's would begin to fetch its content.
        info = self._system.get_file_info(key)
        if info.type != self._fs.FileType.File:
            raise FileNotFoundError(key)
        return info.size, str(info.mtime_ns), self._system.open_input_file(key)

    def files(self, folder: str, *, deep: bool) -> list[tuple[str, int]]:
        kind = self._fs.FileType.File
        infos = self._infos(folder, deep)
        return [(info.path, info.size or 0) for info in infos if info.type == kind]

    def folders(self, folder: str) -> list[str]:
        kind = self._fs.FileType.Directory
        return [info.path for info in self._infos(folder, False) if info.type == kind]

    def _infos(self, folder: str, deep: bool) -> list[Any]:
        selector = self._fs.FileSelector(folder, recursive=deep, allow_not_found=True)
        found = list(self._try(folder, lambda: self._system.get_file_info(selector)))
        if not found and not self._has_bucket(folder):
            raise StoreError("no bucket")
        return found

    def _try(self, key: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except (OSError, ValueError) as error:  # Arrow's own are either
            kind = _kind(error)
            if kind == "missing":
                raise StoreError("missing" if self._has_bucket(key) else "no bucket") from None
            if kind == "denied":
                raise StoreError(kind, _detail(self._reason(key) or error)) from None
            raise StoreError(kind, _detail(error)) from None

    def _has_bucket(self, key: str) -> bool:
        try:
            info = self._system.get_file_info(key.partition("/")[0])
        except (OSError, ValueError):
            return True  # as far as is known
        return bool(info.type != self._fs.FileType.NotFound)

    def _reason(self, key: str) -> Exception | None:
        """What a listing says: the answer to a request for an object has no text."""
        try:
            self._system.get_file_info(self._fs.FileSelector(key.partition("/")[0]))
        except (OSError, ValueError) as error:
            return error
        return None


@lru_cache(maxsize=1)
def _hub() -> Store:
    with extra("remote", "reading hf://"):
        from huggingface_hub import HfFileSystem
    # Its attempts at listing a folder are announced, each on lines of their own.
    logging.getLogger("huggingface_hub.utils._http").setLevel(logging.ERROR)
    return _Hub(HfFileSystem(skip_instance_cache=True))


class _Hub:
    """The Hugging Face Hub, by its own file system."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def open(self, key: str) -> Stored:
        info = self._try(lambda: self._system.info(key, refresh=True))
        if info["type"] != "file":
            raise StoreError("missing")
        version = str(info.get("blob_id"))

        def read(begin: int, count: int) -> bytes:
            return self._try(lambda: self._range(key, begin, count))

        return Stored(int(info["size"]), version, read)

    def files(self, folder: str, *, deep: bool) -> list[tuple[str, int]]:
        found = self._found(folder, deep)
        return [(info["name"], info["size"] or 0) for info in found if info["type"] == "file"]

    def folders(self, folder: str) -> list[str]:
        return [info["name"] for info in self._found(folder, False) if info["type"] != "file"]

    def _range(self, key: str, begin: int, count: int) -> bytes:
        """One request; the file system's own way has attempts of its own, and says so."""
        from huggingface_hub import get_session
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        headers = {**build_hf_headers(), "Range": f"bytes={begin}-{begin + count - 1}"}
        answer = get_session().get(self._system.url(key), headers=headers, timeout=TIMEOUT)
        hf_raise_for_status(answer)
        content = bytes(answer.content)
        return content if answer.status_code == 206 else content[begin : begin + count]

    def _found(self, folder: str, deep: bool) -> list[dict[str, Any]]:
        depth = None if deep else 1
        found = self._try(
            lambda: self._system.find(
                folder, maxdepth=depth, withdirs=True, detail=True, refresh=True
            )
        )
        return [info for info in found.values() if info["name"] != folder]

    def _try(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except FileNotFoundError:
            raise StoreError("missing") from None
        except Exception as error:  # of the client's several HTTP libraries
            response = getattr(error, "response", None)
            status = getattr(response, "status_code", None)
            if status is None:
                raise StoreError(_kind(error), _detail(error)) from None
            kind = {401: "denied", 403: "denied", 404: "missing"}.get(status, "passing")
            raise StoreError(kind, f"HTTP status {status}") from None


def _kind(error: Exception) -> str:
    if isinstance(error, PermissionError) or re.search(_DENIED, str(error)):
        return "denied"
    if isinstance(error, FileNotFoundError) or re.search(_MISSING, str(error)):
        return "missing"
    return "passing"


def _detail(error: Exception) -> str:
    """The words of an error that say what happened, without anything secret."""
    text = " ".join(str(error).split())
    for pattern in (
        r"curlCode: \d+, ([^;]*)",
        r"CURL error \[\d+\]=(.*?) error_info",
        r"(HTTP status(?: code:)? \d+)",
        r"AWS Error (\w+)",
        r"google::cloud::Status\((\w+)",
    ):
        found = re.search(pattern, text)
        if found is not None:
            text = found[1]
            break
    for name, value in os.environ.items():
        if len(value) > 3 and re.search("SECRET|TOKEN|PASSWORD|ACCESS_KEY", name):
            text = text.replace(value, "***")
    return text[:200]
