"""Bytes or text that do not have the form they claim to have: exit code 2."""

from typing import Final

from provstore.errors.base import ProvError

MAX_REASON_CHARS: Final = 1000
"""Longest reason: what is wrong with an input never repeats the whole of it."""


class MalformedError(ProvError):
    """Input bytes do not have the form they claim to have.

    Attributes:
        where: what was read (path, role or record kind) and, where known, the position in it.
    """

    code = "malformed"
    exit_code = 2
    remedy = "Compare the input with schemas/README.md; nothing was written."

    def __init__(self, where: str, reason: str) -> None:
        if len(reason) > MAX_REASON_CHARS:
            reason = f"{reason[:MAX_REASON_CHARS]} ... ({len(reason)} characters)"
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


class CanonError(MalformedError):
    """A record is not in canonical form: its bytes differ from their own re-encoding."""

    code = "not-canonical"


class DuplicateKeyError(CanonError):
    """A JSON object states one key twice."""

    code = "duplicate-key"


class FloatError(CanonError):
    """A record holds a number that is not an integer in the exact range, or NaN or Infinity."""

    code = "float-in-record"


class TrailingBytesError(CanonError):
    """Blanks or other bytes follow or surround the JSON value."""

    code = "trailing-bytes"


class UnknownFieldError(CanonError):
    """A record has a field that its format does not define."""

    code = "unknown-field"


class DepthError(CanonError):
    """JSON nested deeper than any record of ours."""

    code = "too-deep"


class NewerFormatError(MalformedError):
    """The input names a format version that this release does not know.

    Attributes:
        found: the format that the input names.
    """

    code = "newer-format"
    remedy = "It was made by a newer version of provstore, or is no file of ours: upgrade provstore."

    def __init__(self, where: str, found: str) -> None:
        super().__init__(where, f"format {found!r} is unknown here; it may be made by a newer version")
        self.found = found


class DigestError(MalformedError):
    """Text that should be a digest is not: algorithm, length or characters are wrong."""

    code = "bad-digest"
    remedy = "Write blake3:<64 hex>, sha256:<64 hex> or git:<40 hex>, in lower case."


class UnsafePathError(MalformedError):
    """A path that could leave its root: absolute, empty part, ``.``, ``..``, NUL, or too long."""

    code = "unsafe-path"
    remedy = "Use a relative path with / between its parts."


class SpecError(MalformedError):
    """A packet spec says something that cannot be sealed."""

    code = "bad-spec"
    remedy = "Correct the named line of the spec; `prov schema packet-spec` prints its schema."


class PolicyError(MalformedError):
    """A policy says something that cannot be judged by, or that could never fail."""

    code = "bad-policy"
    remedy = "Correct the named line of the policy; docs/policy.md and docs/gates.md say what can be written."


class HostError(MalformedError):
    """A directory that should stand for a host is none, or states what was seen there in an unknown form."""

    code = "bad-host"
    remedy = "Name / or a recorded host; docs/hosts.md says what one holds."


class RecipeError(MalformedError):
    """A recipe says something that cannot be run, or that would not run what it says."""

    code = "bad-recipe"
    remedy = "Correct the named line of the recipe; docs/recipes.md says what can be written."


class DocumentError(MalformedError):
    """A file that was to be imported is no document of a format that is known here."""

    code = "unknown-document"
    remedy = "docs/documents.md lists the formats that are known, and by what they are told apart."


class ChecksumFileError(MalformedError):
    """A checksum file has a line in no known form, or an unknown escape.

    Attributes:
        line: number of the first bad line, from 1.
    """

    code = "bad-checksum-line"

    def __init__(self, where: str, line: int, reason: str) -> None:
        super().__init__(f"{where}:{line}", reason)
        self.line = line


class FrameError(MalformedError):
    """A stored frame is cut short, oversized, or does not unpack to what it states."""

    code = "bad-frame"
    remedy = "Run `prov fsck` to see what it damages, and `prov fsck --repair` with another copy."


class PackError(MalformedError):
    """A pack file is cut short, altered or not a pack."""

    code = "bad-pack"
    remedy = "Fetch the pack again; a whole one verifies with `prov verify FILE`."


class ProofError(MalformedError):
    """An inclusion proof file is not one."""

    code = "bad-proof"


class InspectError(MalformedError):
    """A file is not what its kind requires: no ELF, no safetensors header, no Git tree."""

    code = "not-inspectable"
    remedy = "Choose another kind for this entry in the spec, or replace the file."
