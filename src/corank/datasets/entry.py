"""What is known of a named dataset: its title, citation, terms, files, addresses and reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..data import Dataset
from .archive import Files
from .published_tables import Parts


class Source(NamedTuple):
    """A file to download, with its checksum as '<algorithm>:<hex>' where the publisher does not change the file."""

    url: str
    checksum: str | None = None

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Info:
    """What is known of a named dataset.

    files : the files that the reader needs ('a or b': one of them, '*': any number).
    folders : where they are looked for under the root, besides a folder with the name of the dataset.
    publisher : where to get the dataset by hand, if it has no direct download or the download fails.
    read, read_split : reader of all rows; reader of all rows with the published split. At least one is given.
    split_files : the files of the published split, where they are others than `files`.
    """

    name: str
    title: str
    citation: str
    terms: str
    publisher: str
    files: tuple[str, ...]
    folders: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    read: Callable[[Files], Dataset] | None = field(default=None, repr=False)
    read_split: Callable[[Files], Parts] | None = field(default=None, repr=False)
    split_files: tuple[str, ...] = ()

    @property
    def url(self) -> str | None:
        """The address of the (first) file, if there is a direct download."""
        return self.sources[0].url if self.sources else None

    @property
    def checksum(self) -> str | None:
        return self.sources[0].checksum if self.sources else None

    @property
    def places(self) -> tuple[str, ...]:
        return (self.name, *(f for f in self.folders if f != self.name))
