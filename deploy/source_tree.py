"""The source tree that these scripts belong to, and the version that deploy/version.sh finds."""

import dataclasses
import datetime
import pathlib

from commands import run
from failure import Failure

SOURCE = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Version:
    number: str  # 0.1.0
    commit: str  # its hash
    epoch: int  # the commit's time, Unix seconds: the time of every packed file

    @property
    def created(self):
        """Returns the time in the format of images and SPDX documents."""
        return datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def version_of(tree=SOURCE):
    """Returns the Version of a source tree. Raises Failure."""
    number, commit, epoch = run(tree / "deploy/version.sh").strip().split(" ", 2)
    if not epoch.isdecimal():
        raise Failure(f"SOURCE_DATE_EPOCH is {epoch}: set it to Unix seconds, or to nothing")
    return Version(number, commit, int(epoch))
