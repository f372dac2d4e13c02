"""One file from the web: checked, resumed where it broke off, whole or absent.

The bytes go to PATH.part, beside which PATH.part.tag keeps the server's name for this version of
the file (its ETag or date). If the transfer breaks, the next call asks for the rest with If-Range:
a server whose file has changed, or that cannot send parts, sends the whole file and we begin again.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["fetch"]

_BLOCK = 1 << 18


def fetch(
    url: str, path: str | os.PathLike, sha256: str | None = None, *, progress: bool = True
) -> str:
    """Download `url` to `path`, unless the file is there already; gives its SHA-256.

    Parameters
    ----------
    url : str
        An http or https address.
    path : path-like
        Where the file goes. It appears there only when whole and checked.
    sha256 : str, default=None
        What the file must hash to. None trusts the first download: its hash is kept in
        PATH.sha256, in the format of sha256sum, and any later one must equal it.
    progress : bool, default=True
        Whether to show a progress bar on a terminal.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"url must begin with http:// or https://; got {url!r}")
    path = Path(path)
    record = path.with_name(path.name + ".sha256")
    trusted = sha256
    if trusted is None and record.exists():
        trusted = record.read_text(encoding="utf-8").split()[0]
    if path.exists() and trusted is not None and _sha256(path) == trusted.lower():
        return trusted.lower()
    part, tag = path.with_name(path.name + ".part"), path.with_name(path.name + ".part.tag")
    path.parent.mkdir(parents=True, exist_ok=True)
    _download(url, part, tag, progress)
    found = _sha256(part)
    tag.unlink(missing_ok=True)
    if trusted is not None and found != trusted.lower():
        part.unlink()
        source = "the checksum given" if sha256 else f"what was first fetched here (see {record})"
        raise ValueError(
            f"{url} has SHA-256 {found}, not {trusted.lower()}, {source}; it was damaged on the "
            "way or has changed, and nothing was kept"
        )
    if sha256 is None and not record.exists():
        record.write_text(f"{found}  {path.name}\n", encoding="utf-8")
    os.replace(part, path)
    return found


def _download(url: str, part: Path, tag: Path, progress: bool) -> None:
    have = part.stat().st_size if part.exists() and tag.exists() else 0
    headers = {"User-Agent": "tacit", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": tag.read_text(encoding="latin-1")}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=30
        ) as reply:
            resumed = reply.status == 206 and reply.headers.get("Content-Range", "").startswith(
                f"bytes {have}-"
            )
            have = have if resumed else 0
            length = reply.headers.get("Content-Length")
            total = None if length is None else have + int(length)
            version = _version(reply.headers)
            tag.unlink(missing_ok=True)
            with open(part, "ab" if resumed else "wb") as out:
                if version:
                    tag.write_text(version, encoding="latin-1")
                with _bar(progress, url, have, total) as advance:
                    while block := reply.read(_BLOCK):
                        out.write(block)
                        advance(len(block))
                        have += len(block)
    except urllib.error.HTTPError as e:
        with e:
            if e.code == 416 and have:  # what we have is not a beginning of what is there now
                part.unlink()
                return _download(url, part, tag, progress)
            raise OSError(f"{url} answered {e.code} {e.reason}; the file may have moved") from None
    except OSError as e:  # URLError, timeouts and broken connections
        raise OSError(
            f"could not fetch {url}: {getattr(e, 'reason', e)}; check the network and try again"
        ) from None
    if total is not None and have < total:
        raise OSError(
            f"{url} broke off after {have:,} of {total:,} bytes; call again to fetch the rest"
        )


def _version(headers: Any) -> str | None:
    """What If-Range may name: a strong ETag, or else the date."""
    etag = headers.get("ETag")
    if etag and not etag.startswith("W/"):
        return etag
    return headers.get("Last-Modified")


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _bar(progress: bool, url: str, have: int, total: int | None) -> Iterator[Callable[[int], Any]]:
    if not progress:
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(urlsplit(url).path.rsplit("/", 1)[-1], total=total, completed=have)
        yield lambda n: bar.advance(task, n)
