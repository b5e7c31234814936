"""The downloader against a real server on this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import socket
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ltga.data import CATALOGUE, load_dataset
from ltga.data.download import download
from ltga.errors import DataError

BODY = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(BODY).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves BODY well and badly, and files below `folder`."""

    folder: Path | None = None

    def do_GET(self) -> None:
        if self.path == "/cut":
            self._send(BODY[:1000], announced=len(BODY))
        elif self.path == "/short":
            self._send(BODY[:1000], announced=None)
        elif self.path == "/long":
            self._send(BODY + b"more", announced=None)
        elif self.path == "/good":
            self._send(BODY, announced=len(BODY))
        elif self.folder is not None and (self.folder / self.path.rsplit("/", 1)[1]).exists():
            content = (self.folder / self.path.rsplit("/", 1)[1]).read_bytes()
            self._send(content, announced=len(content))
        else:
            self.send_error(404)

    def _send(self, content: bytes, announced: int | None) -> None:
        self.send_response(200)
        if announced is not None:
            self.send_header("Content-Length", str(announced))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    Handler.folder = None
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_good_file_arrives_whole(server: str, tmp_path: Path) -> None:
    target = download(f"{server}/good", tmp_path / "deep/er/file.bin", sha256=SHA256, size=len(BODY))
    assert target.read_bytes() == BODY
    assert leftovers(tmp_path) == ["file.bin"]


BAD = [
    ("good", "0" * 64, None, f"sha256 {SHA256} instead of 0000"),
    ("good", SHA256, len(BODY) - 1, "more than the expected 255,999 bytes"),
    ("cut", SHA256, len(BODY), "broke off after 1,000 of 256,000 bytes"),
    ("cut", None, None, "broke off after 1,000 of 256,000 bytes"),
    ("short", SHA256, len(BODY), "got 1,000 bytes instead of 256,000"),
    ("short", SHA256, None, "sha256"),
    ("long", SHA256, len(BODY), "more than the expected"),
    ("nowhere", SHA256, len(BODY), "answered 404"),
]


@pytest.mark.parametrize(("path", "sha256", "size", "message"), BAD)
def test_a_bad_answer_leaves_nothing(
    path: str, sha256: str | None, size: int | None, message: str, server: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        download(f"{server}/{path}", tmp_path / "file.bin", sha256=sha256, size=size)
    assert leftovers(tmp_path) == []


def test_a_refused_connection_is_a_data_error(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(DataError, match=r"no connection.*refused"):
        download(f"http://127.0.0.1:{port}/x", tmp_path / "file.bin", sha256=SHA256)
    assert leftovers(tmp_path) == []


def test_a_silent_server_times_out(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        with pytest.raises(DataError, match="no connection"):
            download(url, tmp_path / "file.bin", sha256=SHA256, timeout=0.2)


def test_other_schemes_and_unwritable_folders_are_refused(server: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only http"):
        download("file:///etc/passwd", tmp_path / "file.bin", sha256=None)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot write there"):
        download(f"{server}/good", tmp_path / "file/file.bin", sha256=SHA256)


def test_an_interruption_leaves_no_half_file_and_the_old_one_alone(server: str, tmp_path: Path) -> None:
    target = tmp_path / "file.bin"
    target.write_text("old")

    def interrupt(part: Path) -> None:
        assert part.read_bytes() == BODY
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(f"{server}/good", target, sha256=SHA256, verify=interrupt)
    assert target.read_text() == "old"
    assert leftovers(tmp_path) == ["file.bin"]


@pytest.mark.data
def test_a_missing_dataset_is_fetched_checked_and_kept(
    server: str, data_root: Path, isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ltga.data.facts.UPSTREAM", server)
    Handler.folder = data_root / "raw/planetoid"
    assert load_dataset("cora").data.edge_index.shape[1] == 10556
    assert len(leftovers(isolated)) == 8
    monkeypatch.setattr("ltga.data.facts.UPSTREAM", "http://127.0.0.1:9")
    assert load_dataset("cora").provenance["folder"] == str(isolated)
    victim = isolated / "raw/planetoid/ind.cora.tx"
    victim.unlink()
    with pytest.raises(DataError, match=r"put ind\.cora\.tx \(sha256 b9afbaa4"):
        load_dataset("cora")
    monkeypatch.setattr("ltga.data.facts.UPSTREAM", server)
    load_dataset("cora")
    assert victim.exists()


@pytest.mark.data
def test_a_platonov_file_is_fetched_to_an_explicit_root(
    server: str, data_root: Path, isolated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ltga.data.facts.UPSTREAM", server)
    Handler.folder = data_root
    dataset = load_dataset("chameleon-filtered", root=tmp_path / "mine")
    assert dataset.data.num_nodes == 890
    assert leftovers(tmp_path / "mine") == ["chameleon_filtered.npz"]
    assert not isolated.exists()


def amazon_lookalike(nodes: int, edges: int) -> dict[str, np.ndarray]:
    parts = np.arange(nodes) % 4
    order = np.arange(edges)
    return {
        "node_features": np.zeros((nodes, 300), dtype=np.float32),
        "node_labels": np.arange(nodes) % 5,
        "edges": np.stack([order % nodes, (order % nodes + 1 + order // nodes) % nodes], axis=1),
        "train_masks": np.tile(parts < 2, (10, 1)),
        "val_masks": np.tile(parts == 2, (10, 1)),
        "test_masks": np.tile(parts == 3, (10, 1)),
    }


def test_amazon_ratings_is_known_by_its_shape(
    server: str, isolated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ltga.data.facts.UPSTREAM", server)
    Handler.folder = tmp_path / "upstream"
    Handler.folder.mkdir()
    np.savez_compressed(Handler.folder / "amazon_ratings.npz", **amazon_lookalike(240, 930))
    with pytest.raises(DataError, match=r"not amazon-ratings: it has 240 nodes instead of 24,492"):
        load_dataset("amazon-ratings")
    assert leftovers(isolated) == []
    np.savez_compressed(Handler.folder / "amazon_ratings.npz", **amazon_lookalike(24492, 93050))
    dataset = load_dataset("amazon-ratings")
    assert dataset.data.edge_index.shape[1] == 2 * 93050
    assert CATALOGUE["amazon-ratings"].packed is not None
    assert leftovers(isolated) == ["amazon_ratings.npz"]


def zipped(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.fixture
def tu_upstream(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """MUTAG's archive as a server on this machine has it; the file to serve."""
    Handler.folder = tmp_path / "upstream"
    Handler.folder.mkdir()
    facts = CATALOGUE["mutag"]
    moved = tuple(dataclasses.replace(file, archive=f"{server}/MUTAG.zip") for file in facts.raw)
    monkeypatch.setitem(CATALOGUE, "mutag", dataclasses.replace(facts, raw=moved))
    return Handler.folder / "MUTAG.zip"


@pytest.mark.data
def test_files_inside_an_archive_are_fetched_checked_and_kept(
    tu_upstream: Path, data_root: Path, isolated: Path
) -> None:
    inside = {file.upstream_path or "": (data_root / file.path).read_bytes() for file in CATALOGUE["mutag"].raw}
    zipped(tu_upstream, inside | {"MUTAG/README.txt": b"not wanted", "../outside.txt": b"nor this"})
    assert len(load_dataset("mutag")) == 188
    kept = sorted(path.name for path in isolated.rglob("*") if path.is_file())
    assert kept == sorted(Path(file.path).name for file in CATALOGUE["mutag"].raw)
    tu_upstream.unlink()
    assert len(load_dataset("mutag")) == 188  # from the cache


@pytest.mark.data
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("changed", "MUTAG_A.txt has sha256 .* instead of .*nothing was kept"),
        ("longer", "MUTAG_A.txt has sha256"),
        ("absent", "MUTAG_A.txt is not in the archive"),
        ("no archive", "damaged or not a zip archive"),
        ("no file", "answered 404"),
    ],
)
def test_a_bad_archive_leaves_nothing_behind(
    fault: str, message: str, tu_upstream: Path, data_root: Path, isolated: Path
) -> None:
    inside = {file.upstream_path or "": (data_root / file.path).read_bytes() for file in CATALOGUE["mutag"].raw}
    content = inside.pop("MUTAG/MUTAG_A.txt")
    if fault == "changed":
        inside["MUTAG/MUTAG_A.txt"] = content[:-2] + b"9\n"
    elif fault == "longer":
        inside["MUTAG/MUTAG_A.txt"] = content + b"\n" * 10_000_000
    zipped(tu_upstream, inside)
    if fault == "no archive":
        tu_upstream.write_bytes(b"<html>moved</html>")
    elif fault == "no file":
        tu_upstream.unlink()
    with pytest.raises(DataError, match=f"mutag: download failed: .*{message}.*likewise the 4 other files") as caught:
        load_dataset("mutag")
    assert "\n" not in str(caught.value)
    assert not [path for path in isolated.rglob("*") if path.is_file()]
