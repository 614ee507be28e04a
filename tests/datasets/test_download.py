"""Downloads against a real HTTP server on the loopback address, which can cut, refuse, redirect and lie."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import socket
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from corank import datasets
from corank.datasets import download, web
from corank.datasets.entry import Info, Source
from corank.errors import CorankError

CONTENT = bytes(i * i % 251 for i in range(3_000_000))
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """What a test wants of the server, and what it was asked."""

    daemon_threads = True
    ranges = True  # whether it knows them
    etag: str | None = '"one"'
    length = True
    cuts: list[int]  # break the connection after so many bytes, one entry an answer
    statuses: list[int]  # answer these first
    asked: list[tuple[str, dict[str, str]]]
    content = CONTENT

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), Handler)
        self.cuts, self.statuses, self.asked = [], [], []

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is what some tests are about."""

    def address(self, path: str = "/set.zip") -> str:
        return f"http://{self.server_address[0]!s}:{self.server_port}{path}"

    def asked_ranges(self) -> list[str | None]:
        return [headers.get("Range") for _, headers in self.asked]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        server.asked.append((self.path, dict(self.headers)))
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        if server.statuses:
            self.send_error(server.statuses.pop(0))
            return
        body, start = server.content, 0
        asked = self.headers.get("Range")
        fresh = server.etag is None or self.headers.get("If-Range") in (None, server.etag)
        if asked and server.ranges and fresh:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        if server.etag:
            self.send_header("ETag", server.etag)
        if server.length:
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        body = body[start:]
        if server.cuts:
            body = body[: server.cuts.pop(0)]
        self.wfile.write(body)
        self.wfile.flush()
        self.close_connection = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "PAUSE", 0.001)
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    with started("127.0.0.1") as running:
        yield running


@contextlib.contextmanager
def started(host: str) -> Iterator[Server]:
    running = Server(host)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def entry(url: str, checksum: str | None = MD5, **changes: Any) -> Info:
    return dataclasses.replace(datasets.info("ml-1m"), sources=(Source(url, checksum),), **changes)


def target(root: Path) -> Path:
    return root / "ml-1m" / "set.zip"


def leftovers(root: Path) -> list[str]:
    return sorted(p.name for p in (root / "ml-1m").iterdir() if p.name != "set.zip")


def test_whole_download_with_progress(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    folder = download.fetch(entry(server.address()), tmp_path, lambda done, total: seen.append((done, total)))
    assert folder == tmp_path / "ml-1m"
    assert target(tmp_path).read_bytes() == CONTENT
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert leftovers(tmp_path) == []
    assert server.asked[0][1]["User-Agent"].startswith("corank/")


def test_a_file_that_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        download.fetch(entry(server.address()), tmp_path)
    assert len(server.asked) == 1


def test_a_damaged_file_is_fetched_again(server: Server, tmp_path: Path) -> None:
    target(tmp_path).parent.mkdir()
    target(tmp_path).write_bytes(b"old and wrong")
    download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT


def test_several_files(server: Server, tmp_path: Path) -> None:
    both = tuple(Source(server.address(f"/{name}")) for name in ("train.txt", "test.txt"))
    folder = download.fetch(dataclasses.replace(datasets.info("gowalla"), sources=both), tmp_path)
    assert sorted(p.name for p in folder.iterdir()) == ["test.txt", "train.txt"]


def test_cut_connection_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    server.cuts = [1_000_000, 500_000]
    download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT
    assert server.asked_ranges() == [None, "bytes=1000000-", "bytes=1500000-"]
    assert server.asked[1][1]["If-Range"] == '"one"'


def test_a_later_run_goes_on_where_the_first_gave_up(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TRIES", 1)
    server.cuts = [700_000, 0]
    with pytest.raises(CorankError, match="the bytes that came are kept"):
        download.fetch(entry(server.address()), tmp_path)
    assert not target(tmp_path).exists()
    download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT
    assert server.asked_ranges()[-1] == "bytes=700000-"


def test_a_server_that_ignores_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.cuts = [1_000_000]
    download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT
    assert server.asked_ranges() == [None, "bytes=1000000-"]


def test_a_file_that_changed_meanwhile_starts_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TRIES", 1)
    server.cuts = [1_000_000, 0]
    with pytest.raises(CorankError):
        download.fetch(entry(server.address(), None), tmp_path)
    server.content, server.etag = CONTENT[::-1], '"two"'
    download.fetch(entry(server.address(), None), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_strong_version_nothing_is_resumed(server: Server, tmp_path: Path, etag: str | None) -> None:
    server.etag, server.cuts = etag, [1_000_000]
    download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT
    assert server.asked_ranges() == [None, None]


@pytest.mark.parametrize("extra", [b"", b"and something that does not belong"])
def test_a_part_as_long_as_the_file_or_longer(server: Server, tmp_path: Path, extra: bytes) -> None:
    target(tmp_path).parent.mkdir()
    Path(f"{target(tmp_path)}.part").write_bytes(CONTENT + extra)
    Path(f"{target(tmp_path)}.part.tag").write_text(f'{server.address()}\n"one"\n')
    download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == (2 if extra else 1)


def test_without_a_length_the_file_is_taken_as_it_comes(server: Server, tmp_path: Path) -> None:
    server.length = False
    seen: list[int | None] = []
    download.fetch(entry(server.address()), tmp_path, lambda _, total: seen.append(total))
    assert target(tmp_path).read_bytes() == CONTENT
    assert set(seen) == {None}


def test_wrong_checksum_keeps_the_old_file(server: Server, tmp_path: Path) -> None:
    target(tmp_path).parent.mkdir()
    target(tmp_path).write_bytes(b"old")
    wrong = "sha256:" + "0" * 64
    with pytest.raises(CorankError, match=r"checksum sha256:.* published one is sha256:0000"):
        download.fetch(entry(server.address(), wrong), tmp_path)
    assert target(tmp_path).read_bytes() == b"old"
    assert leftovers(tmp_path) == []


def test_disk_full_while_writing(server: Server, tmp_path: Path) -> None:
    """/dev/full answers every write with the real error."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full on this system")
    target(tmp_path).parent.mkdir()
    target(tmp_path).write_bytes(b"old")
    Path(f"{target(tmp_path)}.part").symlink_to("/dev/full")
    with pytest.raises(CorankError, match=r"is full: [\d,]+ bytes are free and set\.zip needs 3,000,000 more bytes"):
        download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == b"old"


def test_disk_too_small_is_known_before_the_first_byte(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = download.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage._replace(free=2_999_999))
    with pytest.raises(CorankError, match=r"2,999,999 bytes are free and set\.zip needs 3,000,000 more"):
        download.fetch(entry(server.address()), tmp_path)
    assert leftovers(tmp_path) == []


def test_redirect(server: Server, tmp_path: Path) -> None:
    download.fetch(entry(server.address(f"/to/{server.address()}")), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == [f"/to/{server.address()}", "/set.zip"]


@pytest.mark.parametrize("elsewhere", ["file:///etc/set.zip", "ftp://127.0.0.1/set.zip"])
def test_nothing_but_http(server: Server, tmp_path: Path, elsewhere: str) -> None:
    for url in (elsewhere, server.address(f"/to/{elsewhere}")):
        with pytest.raises(CorankError, match=r"is not http or https|Redirection to url .* is not allowed"):
            download.fetch(entry(url), tmp_path)
    assert not target(tmp_path).exists()


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 counts as a public address, and 127.0.0.2 as a private one."""
    monkeypatch.setattr(web, "is_private", lambda address: address != "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1,127.0.0.2,localhost,rebinding.example")


def test_a_public_server_does_not_send_on_to_a_private_one(server: Server, internet: None, tmp_path: Path) -> None:
    inside = f"http://127.0.0.2:{server.server_port}/set.zip"
    with pytest.raises(CorankError, match=r"127\.0\.0\.1 sends on to 127\.0\.0\.2, .*private address.*refused"):
        download.fetch(entry(server.address(f"/to/{inside}")), tmp_path)
    assert [path for path, _ in server.asked] == [f"/to/{inside}"]
    assert leftovers(tmp_path) == []


def test_every_hop_is_looked_at(server: Server, internet: None, tmp_path: Path) -> None:
    inside = f"http://127.0.0.2:{server.server_port}/set.zip"
    again = server.address(f"/to/{server.address(f'/to/{inside}')}")
    with pytest.raises(CorankError, match="refused"):
        download.fetch(entry(again), tmp_path)


def test_a_name_that_changes_its_address(
    server: Server, internet: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: what is looked at is what is connected to."""
    answers, resolve = iter(["127.0.0.1", "127.0.0.2", "127.0.0.2"]), socket.getaddrinfo

    def changing(host: str, *args: Any, **options: Any) -> Any:
        return resolve(next(answers) if host == "rebinding.example" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    url = f"http://rebinding.example:{server.server_port}"
    with pytest.raises(CorankError, match="refused"):
        download.fetch(entry(f"{url}/to/{url}/set.zip"), tmp_path)
    assert len(server.asked) == 1


def test_a_private_mirror_that_was_asked_for(server: Server, internet: None, tmp_path: Path) -> None:
    with started("127.0.0.2") as inside:
        download.fetch(entry(inside.address(f"/to/{inside.address()}")), tmp_path)
        assert target(tmp_path).read_bytes() == CONTENT
        target(tmp_path).unlink()
        back = inside.address(f"/to/{server.address(f'/to/{inside.address()}')}")  # out and back in
        with pytest.raises(CorankError, match="refused"):
            download.fetch(entry(back), tmp_path)


def test_behind_a_proxy_names_are_looked_at(server: Server, internet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", server.address(""))
    guard = web.Guard()
    for url, refused in (
        ("http://no-such-name.invalid/set.zip", False),  # only the proxy can resolve it
        ("http://127.0.0.2/set.zip", True),
    ):
        request = urllib.request.Request(url)
        request.set_proxy(f"127.0.0.1:{server.server_port}", "http")
        if refused:
            with pytest.raises(CorankError, match="refused"):
                guard.connection(object, request)
        else:
            assert guard.connection(object, request) is object


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%lo",
        "fc00::1",
        "fd12:3456::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:a9fe:a9fe",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
        "2002:a00:1::",
    ],
)
def test_private_addresses(address: str) -> None:
    assert web.is_private(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses(address: str) -> None:
    assert not web.is_private(address)


def test_other_spellings_of_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = web.Guard()
    guard.public = "example.org"
    for host in ("127.1", "2130706433", "0x7f000001", "localhost", "0"):
        with pytest.raises(CorankError, match="private address"):
            guard.addresses(host, 80)


@pytest.mark.parametrize("place", ["http://127.0.0.1:99999/x", "http://[/x", f"http://{'a' * 70}.org/x"])
def test_redirects_to_no_address(server: Server, tmp_path: Path, place: str) -> None:
    with pytest.raises(CorankError):
        download.fetch(entry(server.address(f"/to/{place}")), tmp_path)


def test_a_server_that_never_stops(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LARGEST", 1_000_000)
    for server.length in (True, False):
        with pytest.raises(CorankError, match=r"more than 1,000,000 bytes"):
            download.fetch(entry(server.address()), tmp_path)
        assert leftovers(tmp_path) == []


def test_a_redirect_never_leaves_https() -> None:
    request = urllib.request.Request("https://example.org/set.zip")
    with pytest.raises(CorankError, match="not protected: refused"):
        web.Redirects().redirect_request(request, io.BytesIO(), 302, "", {}, "http://example.org/set.zip")


def test_a_redirect_loop_ends(server: Server, tmp_path: Path) -> None:
    loop = server.address("/to/" + "/to/" * 20 + "set.zip")
    with pytest.raises(CorankError, match="answered 302"):
        download.fetch(entry(loop), tmp_path)


def test_404_says_where_to_look(server: Server, tmp_path: Path) -> None:
    server.statuses = [404]
    with pytest.raises(CorankError, match=r"answered 404 Not Found.*grouplens\.org.*put it in") as caught:
        download.fetch(entry(server.address()), tmp_path)
    assert str(tmp_path / "ml-1m") in str(caught.value)
    assert len(server.asked) == 1


def test_a_passing_500_is_tried_again(server: Server, tmp_path: Path) -> None:
    server.statuses = [500, 503]
    download.fetch(entry(server.address()), tmp_path)
    assert target(tmp_path).read_bytes() == CONTENT


def test_a_lasting_500_ends(server: Server, tmp_path: Path) -> None:
    server.statuses = [500] * 50
    with pytest.raises(CorankError, match=r"in 5 attempts \(the server answered 500"):
        download.fetch(entry(server.address()), tmp_path)
    assert len(server.asked) == 5


def test_a_silent_server_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "PAUSE", 0.001)
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    monkeypatch.setattr(download, "TRIES", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/set.zip"
        with pytest.raises(CorankError, match="timed out"):
            download.fetch(entry(url), tmp_path)


def test_offline_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "PAUSE", 1e6)  # a second try would hang
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(CorankError, match=r"cannot be reached \(Connection refused\).*offline.*put it in"):
        download.fetch(entry(f"http://127.0.0.1:{port}/set.zip"), tmp_path)


def test_a_name_that_does_not_resolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 1e6)
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    with pytest.raises(CorankError, match=r"cannot be reached \(Name or service not known"):
        download.fetch("ml-100k", tmp_path)


def test_a_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "ml-1m").write_text("a file where the folder should be")
    with pytest.raises(CorankError, match=r"cannot be written.*choose another root"):
        download.fetch(entry(server.address()), tmp_path)


def test_sets_without_a_download_name_the_publisher(tmp_path: Path) -> None:
    with pytest.raises(CorankError, match="'netflix' has no direct download: get it from Kaggle"):
        download.fetch("netflix", tmp_path)
    with pytest.raises(CorankError, match="did you mean 'netflix'"):
        download.fetch("netflx", tmp_path)


def test_what_is_fetched_can_be_loaded(server: Server, tmp_path: Path) -> None:
    server.content = b"1 10\n1 20\n2 10\n"
    steam = dataclasses.replace(datasets.info("steam"), sources=(Source(server.address("/Steam.txt")),))
    folder = download.fetch(steam, tmp_path)
    assert len(datasets.load("steam", tmp_path)) == 3
    assert len(datasets.open_any(folder)) == 3
