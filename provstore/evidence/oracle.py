"""Oracles: the token ids or text digests that define correct output, one row a prompt.

Whether a file is a token or a text oracle is read from its rows, since the schema names are the labs' own.
A full teacher run (a benchmark file) also reads as an oracle, with both.
"""

from typing import Final

import msgspec

from provstore.evidence import rows as rows_module
from provstore.evidence.bench import HEX_64
from provstore.evidence.documents import Field, add_facts, check_fields
from provstore.evidence.finding import Extraction, ReaderResult
from provstore.evidence.jsonreader import ABSENT, DEFAULT_LIMITS, Limits, read, resolve
from provstore.evidence.rows import Row

ROW_FIELDS: Final = (
    Field("prompt_index", ("integer",), required=True),
    Field("prompt_id", ("string",), required=True),
    Field("prompt_sha256", ("string",)),
    Field("token_ids", ("integers",)),
    Field("sha256", ("string",)),
)
"""What the format says about the fields of a row."""


class OracleRow(msgspec.Struct, frozen=True, kw_only=True):
    """Correct output for one prompt; None where the oracle does not say.

    Attributes:
        location: JSON pointer of the row.
        prompt_index: position of the prompt in its suite.
        prompt_id: its name.
        prompt_sha256: digest of the prompt.
        token_ids: the correct tokens; never empty.
        text_sha256: digest of the correct text.
    """

    location: str
    prompt_index: int | None
    prompt_id: str | None
    prompt_sha256: str | None
    token_ids: tuple[int, ...] | None
    text_sha256: str | None


class OracleResult(ReaderResult, frozen=True, kw_only=True):
    """An oracle.

    Attributes:
        rows: in the order of the file.
        source_sha256: digest of the run that it was derived from; None when it does not say.
    """

    rows: tuple[OracleRow, ...]
    source_sha256: str | None

    @property
    def has_tokens(self) -> bool:
        """True if there are rows and every one has token ids."""
        return bool(self.rows) and all(row.token_ids is not None for row in self.rows)

    @property
    def has_texts(self) -> bool:
        """True if there are rows and every one has a text digest."""
        return bool(self.rows) and all(row.text_sha256 is not None for row in self.rows)


def read_oracle(data: bytes, limits: Limits = DEFAULT_LIMITS) -> OracleResult:
    """Read an oracle.

    Returns:
        Facts whose keys begin with ``oracle.``, rows, and findings.

    Example:
        >>> found = read_oracle(b'{"rows": [{"prompt_index": 0, "prompt_id": "a", "token_ids": [5, 6, 7]}]}')
        >>> found.rows[0].token_ids, found.has_tokens, found.has_texts
        ((5, 6, 7), True, False)
        >>> [(f.code, f.location) for f in read_oracle(b'{"rows": [{"token_ids": []}]}').findings][-1]
        ('no-output', '/rows/0')
    """
    document = read(data, limits)
    out = Extraction()
    out.add(document.findings)
    rows: list[OracleRow] = []
    source = resolve(document.value, "/source_sha256")
    if document.value is not ABSENT:
        add_facts(document.value, "oracle", "", out)
        listed = rows_module.at(document.value)
        out.add(listed.findings)
        rows = [_row(row, out) for row in listed.rows]
        if not rows:
            out.finding("no-rows", "/rows", "an oracle without rows judges nothing", "unknown")
        _check_repeats(rows, out)
        if source is not ABSENT and not (isinstance(source, str) and HEX_64.fullmatch(source)):
            out.finding("bad-digest", "/source_sha256", "must be 64 lower-case hex digits")
    return OracleResult(
        facts=tuple(out.facts),
        findings=out.findings(),
        rows=tuple(rows),
        source_sha256=source if isinstance(source, str) and HEX_64.fullmatch(source) else None,
    )


def _row(row: Row, out: Extraction) -> OracleRow:
    check_fields(dict(row.fields), ROW_FIELDS, row.location, out)
    index, name, tokens = row.get("prompt_index"), row.get("prompt_id"), row.get("token_ids")
    ids: tuple[int, ...] | None = None
    if isinstance(tokens, list) and tokens and all(type(token) is int for token in tokens):
        ids = tuple(token for token in tokens if isinstance(token, int))
        if min(ids) < 0:
            out.finding("negative", row.where("token_ids"), "a token id is at least 0")
            ids = None
    text = _digest(row, "sha256", out)
    if ids is None and text is None:
        out.finding("no-output", row.location, "neither token ids nor a text digest", "unknown")
    return OracleRow(
        location=row.location,
        prompt_index=index if type(index) is int else None,
        prompt_id=name if isinstance(name, str) else None,
        prompt_sha256=_digest(row, "prompt_sha256", out),
        token_ids=ids,
        text_sha256=text,
    )


def _digest(row: Row, name: str, out: Extraction) -> str | None:
    found = row.get(name)
    if not isinstance(found, str):
        return None
    if HEX_64.fullmatch(found):
        return found
    out.finding("bad-digest", row.where(name), "must be 64 lower-case hex digits")
    return None


def _check_repeats(rows: list[OracleRow], out: Extraction) -> None:
    seen: dict[object, str] = {}
    for row in rows:
        for value in (row.prompt_index, row.prompt_id):
            if value is not None and seen.setdefault(value, row.location) != row.location:
                out.finding("duplicate-row", row.location, f"the prompt of {seen[value]} again")
                break
