"""Where a Python distribution came from: direct URLs, requirement URLs, commits in versions.

Sources: Direct URL (PEP 610) and version (PEP 440) specifications of the PyPA; pip's page on VCS support.
"""

import re
from typing import Any, Final

from provstore.errors import InspectError
from provstore.files.git_urls import public_url
from provstore.paths import show

COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""A whole commit id, SHA-1 or SHA-256."""

_LOCAL_COMMIT: Final = re.compile(r"(?:git|g)(?!20[0-9]{6}$)([0-9a-f]{4,64})")
_VCS: Final = re.compile(r"(git|hg|svn|bzr)\+(.+)", re.DOTALL)


def direct_url_fields(document: Any, where: str) -> dict[str, str]:
    """Check a parsed ``direct_url.json`` and return what it states.

    Keys, each only if stated: ``url`` (always), ``vcs``, ``vcs_commit``, ``requested_revision``,
    ``archive_digest`` (``sha256:…``), ``subdirectory``, and ``editable`` with some text if it is true.

    Raises:
        InspectError: no object, no URL, or a value of another type than PEP 610 gives it.

    Example:
        >>> direct_url_fields({"url": "file:///x", "dir_info": {"editable": True}}, "direct_url.json")
        {'url': 'file:///x', 'editable': 'true'}
    """
    if not isinstance(document, dict):
        raise InspectError(where, "is no JSON object")
    infos = [document.get(key, {}) for key in ("vcs_info", "archive_info", "dir_info")]
    if not all(isinstance(info, dict) for info in infos):
        raise InspectError(where, "has vcs_info, archive_info or dir_info that is no object")
    vcs, archive, directory = infos
    hashes = archive.get("hashes", {})
    digest = hashes.get("sha256") if isinstance(hashes, dict) else None
    older = archive.get("hash")
    if digest is None and isinstance(older, str) and older.startswith("sha256="):
        digest = older.removeprefix("sha256=")
    stated = {
        "url": document.get("url"),
        "vcs": vcs.get("vcs"),
        "vcs_commit": vcs.get("commit_id"),
        "requested_revision": vcs.get("requested_revision"),
        "archive_digest": None if digest is None else f"sha256:{digest}",
        "subdirectory": document.get("subdirectory"),
        "editable": "true" if directory.get("editable") is True else None,
    }
    for key, value in stated.items():
        if not isinstance(value, str | None) or (key == "url" and not value):
            raise InspectError(where, f"states no text for {key}")
        if value is not None and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise InspectError(where, f"states {key} in text that is not valid Unicode")
    return {key: value for key, value in stated.items() if value is not None}


def requirement_url(text: str) -> tuple[str, dict[str, str]]:
    """Take the URL or path of a requirement apart.

    Returns:
        The address, as :func:`provstore.files.git_urls.public_url` shows it (a local path and a ``file:`` URL
        as stated); and what is stated beside it: ``vcs``, ``vcs_commit`` for a whole id or else
        ``requested_revision``, ``archive_digest``, ``subdirectory``.

    Example:
        >>> requirement_url("git+https://me:secret@example.org/a.git@v1#egg=a")
        ('https://example.org/a.git', {'vcs': 'git', 'requested_revision': 'v1'})
    """
    address, _, fragment = text.partition("#")
    more: dict[str, str] = {}
    if vcs := _VCS.fullmatch(address):
        more["vcs"], address = vcs[1], vcs[2]
        start = address.find("/", address.find("://") + 3)
        path, at, revision = address[start:].rpartition("@")
        if start >= 0 and at and revision:
            address = address[:start] + path
            more["vcs_commit" if COMMIT.fullmatch(revision) else "requested_revision"] = show(revision)
    for field in fragment.split("&"):
        key, _, value = field.partition("=")
        if key == "sha256" and re.fullmatch(r"[0-9a-f]{64}", value):
            more["archive_digest"] = f"sha256:{value}"
        if key == "subdirectory" and value:
            more["subdirectory"] = show(value)
    if address.lower().startswith("file:") or not (vcs or "://" in address):
        return show(address), more
    return public_url(address.encode()), more


def contradiction(version: str, commit: str) -> str | None:
    """Return how a version's local segment contradicts a commit, or None.

    Build tools write a commit into the local segment as ``g744a8b4`` or ``git744a8b4``. Eight digits that
    read as a date are none.

    Args:
        version: of the distribution.
        commit: whole id of the commit that it is said to be built from.

    Example:
        >>> contradiction("0.1.dev53+g744a8b4", "4a6fd874725312c53883b1d53970af1d0eccfc3f")[:45]
        'version 0.1.dev53+g744a8b4 names commit 744a8'
        >>> contradiction("0.1+cu128", "4a6fd874725312c53883b1d53970af1d0eccfc3f") is None
        True
    """
    for part in version.partition("+")[2].split("."):
        match = _LOCAL_COMMIT.fullmatch(part)
        if match and COMMIT.fullmatch(commit) and not commit.startswith(match[1]):
            return f"version {version} names commit {match[1]}, its origin is commit {commit}"
    return None
