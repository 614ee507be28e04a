"""A PostgreSQL of one's own: a cluster in a temporary folder, reached by a socket there, removed afterwards."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl."""
    found = [path for place in PLACES for path in Path("/").glob(place.lstrip("/")) if (path / "initdb").exists()]
    beside = shutil.which("initdb")
    return max(found, default=None) or (Path(beside).parent if beside else None)


class Cluster:
    """A PostgreSQL server that may be stopped and started."""

    def __init__(self) -> None:
        where = binaries()
        if where is None:
            raise FileNotFoundError("PostgreSQL is not here: install it (Debian: apt-get install postgresql)")
        self.bin = where
        self.user = "postgres" if os.geteuid() == 0 else getpass.getuser()  # it refuses to run as root
        self.folder = Path(tempfile.mkdtemp(prefix="corank-pg-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c max_connections=30"
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        command = [str(self.bin / program), *words]
        if os.geteuid() == 0:
            command = ["runuser", "-u", self.user, "--", *command]
        # Not captured: the server inherits the streams and would keep a pipe open.
        with open(self.folder.parent / f"{self.folder.name}.out", "wb") as out:
            done = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/", timeout=120)
        said = Path(out.name).read_text(errors="replace")
        Path(out.name).unlink()
        assert done.returncode == 0, said
