"""Remote URLs as they may be shown and sealed: no credentials, no paths of this host."""

import re
from typing import Final

from provstore.paths import show

LOCAL: Final = "(local path)"
"""Stands for a remote that lies on the host itself."""

_HELPER: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)::")
_SCHEME: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)://")
_MAX_HELPERS: Final = 8
_SSH: Final = frozenset({"ssh", "git+ssh", "ssh+git"})
_SCP_LIKE: Final = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^@/:]+|\[[^]/@]+\]):(?P<path>.*)", re.DOTALL)


def public_url(url: bytes) -> str:
    """Return a remote's URL without anything secret in it, safe to show.

    Of a URL, user name and password go, and query and fragment, which carry tokens too; a bare user name
    stays with SSH, where it is part of the address and no secret. A local path, which means nothing
    elsewhere, becomes :data:`LOCAL`; the command of a ``ext::`` remote, and what is no address at all,
    is not shown.

    Args:
        url: as in ``remote.NAME.url`` (git-fetch, "GIT URLS").

    Example:
        >>> public_url(b"https://user:token@example.org/a.git?key=1")
        'https://example.org/a.git'
        >>> public_url(b"git@example.org:a.git"), public_url(b"/home/me/a")
        ('git@example.org:a.git', '(local path)')
    """
    text = url.decode("utf-8", "surrogateescape")
    helpers = []
    while helper := _HELPER.match(text):
        helpers.append(helper[0])
        if helper[1] in ("ext", "fd") or len(helpers) > _MAX_HELPERS:
            return show("".join(helpers) + "(not shown)")
        text = text[helper.end() :]
    return show("".join(helpers)) + _address(text)


def _address(text: str) -> str:
    """Return what follows the names of helpers, without anything secret in it."""
    scheme = _SCHEME.match(text)
    if scheme:
        return show(_without_secrets(scheme[1].lower(), text[scheme.end() :]))
    scp_like = _SCP_LIKE.fullmatch(text)
    if scp_like is None or (len(scp_like["host"]) == 1 and not scp_like["user"]):
        # One letter is a drive of Windows.
        return LOCAL if "@" not in text.split("/", 1)[0] else "(not shown)"
    # `user:password@host:path` is no address that Git knows, but people write it.
    path = scp_like["path"]
    if "@" in path.split("/", 1)[0]:
        return "(not shown)"
    user = f"{scp_like['user']}@" if scp_like["user"] else ""
    return show(f"{user}{scp_like['host']}:{path}")


def _without_secrets(scheme: str, rest: str) -> str:
    """Return ``scheme://rest`` with the user information, query and fragment taken out."""
    if scheme == "file":
        return LOCAL
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    # A password with a slash in it pushes its own end, and the host, into what looks like the path.
    if "@" in path:
        return f"{scheme}://(not shown)"
    kept = f"{user}@" if at and scheme in _SSH and ":" not in user else ""
    for mark in "?#":
        path = path.partition(mark)[0]
        host = host.partition(mark)[0]
    return f"{scheme}://{kept}{host}{slash}{path}"
