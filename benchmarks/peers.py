"""The other tools, each with its own store on the same tree: how to make one, fill it, check it, compare.

Their settings are the usual ones, but for what would let them do other work or disturb the next case.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from measure import Command, timed
from setting import Setting

B3SUM_LIST: Final = "find . -type f -print0 | xargs -0 b3sum > $1"
SHA256SUM_LIST: Final = "find . -type f -print0 | xargs -0 sha256sum > $1"


class Peer(Protocol):
    """A tool with a store, beside ours."""

    @property
    def name(self) -> str:
        """Return the name of its program."""

    def make(self) -> None:
        """Make an empty store."""

    def add(self) -> Command:
        """Return what takes in the tree as it is now."""

    def check(self) -> Command:
        """Return what re-reads every byte of the store."""

    def compare(self) -> Command:
        """Return what shows the difference between the last two states."""


class Git(NamedTuple):
    """Git, with its store outside of the tree."""

    setting: Setting
    tree: Path
    place: Path
    name: str = "git"

    def _git(self, text: str) -> Command:
        command = self.setting.shell(text, cwd=self.tree)
        settings = {
            # A collection of garbage in the background would run beside the next case.
            "gc.auto": "0",
            "maintenance.auto": "false",
            "user.name": "bench",
            "user.email": "bench@example.invalid",
        }
        env = {**command.env, "GIT_DIR": os.fspath(self.place), "GIT_WORK_TREE": os.fspath(self.tree)}
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings.items()):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return command._replace(env=env)

    def make(self) -> None:
        """Make an empty repository."""
        timed(self._git("git init --quiet"))

    def add(self) -> Command:
        """Return add and commit; with force, since what the tree's own rules ignore is content too."""
        return self._git("git add --all --force . && git commit --quiet --allow-empty -m state")

    def status(self) -> Command:
        """Return what finds that nothing changed."""
        return self._git("git status --porcelain")

    def check(self) -> Command:
        """Return the check of all objects."""
        return self._git("git fsck --full --no-progress")

    def compare(self) -> Command:
        """Return the names that the last commit changed."""
        return self._git("git diff --name-status HEAD~1 HEAD")


class Restic(NamedTuple):
    """restic, with a cache of its own."""

    setting: Setting
    tree: Path
    place: Path
    name: str = "restic"

    def _restic(self, *arguments: str) -> Command:
        command = self.setting.command("restic", *arguments, cwd=self.tree)
        env = {
            **command.env,
            "RESTIC_REPOSITORY": os.fspath(self.place),
            "RESTIC_PASSWORD": "bench",
            "RESTIC_CACHE_DIR": os.fspath(self.place) + ".cache",
        }
        return command._replace(env=env)

    def make(self) -> None:
        """Make an empty repository."""
        timed(self._restic("init", "--quiet"))

    def add(self) -> Command:
        """Return a backup of the tree."""
        return self._restic("backup", "--quiet", "--host", "bench", ".")

    def check(self) -> Command:
        """Return the check that reads all data."""
        return self._restic("check", "--quiet", "--read-data")

    def compare(self) -> Command:
        """Return the difference of the last two snapshots."""
        listing = self._restic("snapshots", "--json")
        text = subprocess.run(listing.argv, env=dict(listing.env), check=True, capture_output=True).stdout
        return self._restic("diff", *[snapshot["id"] for snapshot in json.loads(text)[-2:]])


class Borg(NamedTuple):
    """borg, without encryption."""

    setting: Setting
    tree: Path
    place: Path
    name: str = "borg"

    def _borg(self, *arguments: str) -> Command:
        command = self.setting.command("borg", *arguments, cwd=self.tree)
        env = {
            **command.env,
            "BORG_REPO": os.fspath(self.place),
            "BORG_BASE_DIR": os.fspath(self.place) + ".base",
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }
        return command._replace(env=env)

    def make(self) -> None:
        """Make an empty repository."""
        timed(self._borg("init", "--encryption", "none"))

    def add(self) -> Command:
        """Return a new archive of the tree."""
        return self._borg("create", "--compression", "zstd,3", "::{now:%Y%m%d-%H%M%S.%f}", ".")

    def check(self) -> Command:
        """Return the check that reads all data."""
        return self._borg("check", "--verify-data")

    def compare(self) -> Command:
        """Return the difference of the last two archives."""
        listing = self._borg("list", "--short", "--last", "2")
        text = subprocess.run(listing.argv, env=dict(listing.env), check=True, capture_output=True, text=True)
        before, after = text.stdout.split()
        return self._borg("diff", f"::{before}", after)


def make_peers(setting: Setting, tree: Path) -> list[Peer]:
    """Return the installed peers, each with a new empty store."""
    known: tuple[type[Git] | type[Restic] | type[Borg], ...] = (Git, Restic, Borg)
    made: list[Peer] = []
    for kind in known:
        name = kind.__name__.lower()
        if setting.has(name):
            peer = kind(setting, tree, setting.fresh(name))
            peer.make()
            made.append(peer)
    return made
