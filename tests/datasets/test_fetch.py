"""Downloads, against a server on this machine: the network is never touched."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from tacit.datasets import store, write_arff
from tacit.datasets.fetch import fetch

CONTENT = np.random.default_rng(0).bytes(1_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `files`; counts the bytes sent; can break off, and forget about Range."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"/file.bin": CONTENT}
        self.sent, self.break_after, self.ranges, self.etags = [], None, True, True
        self.url = f"http://127.0.0.1:{self.server_port}/file.bin"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        start = 0
        asked = self.headers.get("Range")
        if asked and self.server.ranges and self.headers["If-Range"] == etag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.server.etags:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        body = content[start:][: self.server.break_after]
        self.server.sent.append(len(body))
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("progress", [True, False])
def test_the_file_arrives_and_is_not_fetched_again(server, tmp_path, progress):
    path = tmp_path / "deep" / "file.bin"
    for _ in range(2):
        assert fetch(server.url, path, SHA256.upper(), progress=progress) == SHA256
    assert path.read_bytes() == CONTENT
    assert server.sent == [len(CONTENT)]
    assert list(path.parent.iterdir()) == [path]


def interrupted(server, path):
    server.break_after = 300_000
    with pytest.raises(OSError, match="broke off after 300,000 of 1,000,000 bytes; call again"):
        fetch(server.url, path, SHA256)
    assert not path.exists()
    server.break_after = None


def test_only_the_rest_is_fetched_after_an_interruption(server, tmp_path):
    path = tmp_path / "file.bin"
    interrupted(server, path)
    fetch(server.url, path, SHA256)
    assert path.read_bytes() == CONTENT
    assert server.sent == [300_000, 700_000]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("lacks", ["ranges", "etags"])
def test_the_whole_file_is_fetched_again_where_the_server_cannot_resume(server, tmp_path, lacks):
    setattr(server, lacks, False)
    path = tmp_path / "file.bin"
    interrupted(server, path)
    fetch(server.url, path, SHA256)
    assert path.read_bytes() == CONTENT
    assert server.sent == [300_000, 1_000_000]


@pytest.mark.parametrize("size", [1_000_000, 100])
def test_a_file_that_changed_meanwhile_is_fetched_whole(server, tmp_path, size):
    path = tmp_path / "file.bin"
    interrupted(server, path)
    server.files["/file.bin"] = changed = CONTENT[::-1][:size]
    fetch(server.url, path, hashlib.sha256(changed).hexdigest())
    assert path.read_bytes() == changed


def test_a_part_longer_than_the_file_is_given_up(server, tmp_path):
    path = tmp_path / "file.bin"
    interrupted(server, path)
    (tmp_path / "file.bin.part").write_bytes(CONTENT + b"more")
    fetch(server.url, path, SHA256)  # the server answers 416 first
    assert path.read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(ValueError, match=f"has SHA-256 {SHA256}, not {'0' * 64}"):
        fetch(server.url, tmp_path / "file.bin", "0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_without_a_checksum_the_first_download_is_trusted_and_held_to(server, tmp_path):
    path = tmp_path / "file.bin"
    assert fetch(server.url, path) == SHA256
    record = tmp_path / "file.bin.sha256"
    assert record.read_text() == f"{SHA256}  file.bin\n"
    path.unlink()
    server.files["/file.bin"] = b"something else"
    with pytest.raises(ValueError, match="what was first fetched here"):
        fetch(server.url, path)
    assert list(tmp_path.iterdir()) == [record]


def test_a_file_that_is_not_there_is_one_sentence(server, tmp_path):
    with pytest.raises(OSError, match=r"/none answered 404 Not Found; the file may have moved"):
        fetch(server.url.replace("file.bin", "none"), tmp_path / "file.bin")
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_sentence(tmp_path):
    with Server() as gone:
        url = gone.url
    with pytest.raises(OSError, match=r"^could not fetch .*; check the network and try again"):
        fetch(url, tmp_path / "file.bin")


def test_only_the_web_is_fetched_from(tmp_path):
    with pytest.raises(ValueError, match="url must begin with http:// or https://"):
        fetch("file:///etc/passwd", tmp_path / "file.bin")


def test_a_downloaded_set_loads_and_is_fetched_once(server, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.random((6, 3), dtype=np.float32), (rng.random((6, 2)) < 0.5).astype(np.int8)
    for part, rows in [("train", slice(4)), ("test", slice(4, 6))]:
        write_arff(tmp_path / f"tiny-{part}.arff", X[rows], Y[rows])
        server.files[f"/{part}"] = (tmp_path / f"tiny-{part}.arff").read_bytes()
    server.files["/xml"] = (tmp_path / "tiny-train.xml").read_bytes()
    home = store._Home(("train", "test"), "xml", ((4, 3, 2), (2, 3, 2)))
    monkeypatch.setattr(store, "_HOMES", {"tiny": home})
    monkeypatch.setattr(store._Home, "url", lambda self, path: server.url.replace("file.bin", path))
    monkeypatch.setattr(store, "_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("TACIT_DATA", raising=False)
    with pytest.raises(ValueError, match=r"there is no data set 'tiny' here.* can fetch tiny"):
        store.load("tiny")
    folder = store.download("tiny", progress=False)
    assert store.download("tiny", progress=False) == folder
    assert len(server.sent) == 3
    assert store.names() == {"debian": "embedded", "tiny": str(folder)}
    tiny = store.load("tiny")
    np.testing.assert_array_equal(tiny.X, X[:4])
    np.testing.assert_array_equal(tiny.X_test, X[4:])
    np.testing.assert_array_equal(tiny.Y_test.to_array(), Y[4:])
    records = sorted(path.name for path in (tmp_path / "cache/downloads/tiny").iterdir())
    assert records == ["test.sha256", "train.sha256", "xml.sha256"]

    monkeypatch.setattr(store, "_HOMES", {"other": store._Home(("train",), "xml", ((5, 3, 2),))})
    with pytest.raises(ValueError, match=r"not .*5, 3, 2.* as published"):
        store.download("other", progress=False)
    assert "other" not in store.names()


def test_a_set_without_a_public_home_is_one_sentence():
    with pytest.raises(ValueError, match="download does not know 'x'; it can fetch bibtex, "):
        store.download("x")
