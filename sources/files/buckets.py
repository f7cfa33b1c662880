"""S3 and Google Cloud Storage through Arrow, which is installed anyway; by s3fs and gcsfs where they are installed.

Credentials, region and endpoint come from where those tools look for them (AWS_PROFILE, AWS_ENDPOINT_URL,
GOOGLE_APPLICATION_CREDENTIALS …); a bucket is read anonymously where there are none."""

from __future__ import annotations

import importlib.util
import os
from datetime import timedelta
from functools import cache
from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.registry import register_implementation

CONNECT_SECONDS, REQUEST_SECONDS = 10, 60
EMULATOR = "STORAGE_EMULATOR_HOST"  # by which Google's own libraries find a stand-in


@cache
def register_buckets() -> None:
    """Teach fsspec `s3://` and `gs://` where their own packages are not installed."""
    for package, kinds, made in (("s3fs", ("s3", "s3a"), S3), ("gcsfs", ("gs", "gcs"), GoogleStorage)):
        if importlib.util.find_spec(package) is None:
            for kind in kinds:
                register_implementation(kind, made, clobber=True)


class _Bucket(ArrowFSWrapper):  # type: ignore[misc]
    def ukey(self, path: str) -> str:
        info = self.info(path)
        return f"{info['name']} {info['size']} {info['mtime']}"


class S3(_Bucket):
    def __init__(self, **options: Any) -> None:
        import boto3
        from pyarrow.fs import S3FileSystem

        session = boto3.Session()
        limits = {"connect_timeout": CONNECT_SECONDS, "request_timeout": REQUEST_SECONDS}
        named: dict[str, Any] = {"region": session.region_name} if session.region_name else {}
        if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
            named |= _endpoint(endpoint)
        anonymous = session.get_credentials() is None
        super().__init__(fs=S3FileSystem(anonymous=anonymous, **named, **limits), **options)


class GoogleStorage(_Bucket):
    def __init__(self, **options: Any) -> None:
        from pyarrow.fs import GcsFileSystem

        emulator = os.environ.get(EMULATOR, "")
        named = {"anonymous": True, **_endpoint(emulator)} if emulator else {}
        super().__init__(fs=GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_SECONDS), **named), **options)


def _endpoint(address: str) -> dict[str, str]:
    scheme, _, host = address.rstrip("/").rpartition("://")
    return {"scheme": scheme or "http", "endpoint_override": host}
