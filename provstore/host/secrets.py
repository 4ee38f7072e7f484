"""What must not be captured by accident: values that look like tokens or keys, and variables named so."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

WITHHELD: Final = "<withheld>"

USUAL: Final = (
    "CCL_*",
    "CUDA_*",
    "FI_*",
    "GPU_*",
    "HF_HOME",
    "HF_HUB_*",
    "HIP_*",
    "HOME",
    "HSA_*",
    "KMP_*",
    "LANG",
    "LC_*",
    "LD_*",
    "MALLOC_*",
    "MKL_*",
    "NCCL_*",
    "NUMBA_*",
    "OMP_*",
    "ONEAPI_*",
    "PATH",
    "PWD",
    "PYTHON*",
    "PYTORCH_*",
    "ROCR_*",
    "SYCL_*",
    "TMPDIR",
    "TOKENIZERS_PARALLELISM",
    "TORCH*",
    "TRANSFORMERS_*",
    "TRITON_*",
    "TZ",
    "UR_*",
    "VIRTUAL_ENV",
    "VLLM_*",
    "XDG_*",
    "XPU_*",
    "ZE*",
)
"""Variables that decide what an engine computes and where it looks; no others are captured unless asked."""

_NAMES: Final = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTHORIZATION|COOKIE)$"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|AUTH)_?KEY(?:_ID)?$"
)
_OPTIONS: Final = re.compile(r"--?[a-z-]*(?:api-key|token|password|passwd|secret|credentials?|auth)")
_SHAPES: Final = {
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{16,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{16,}",
    "an API key": r"\bsk-[A-Za-z0-9_-]{16,}",
    "a Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "a Google key": r"\bAIza[A-Za-z0-9_-]{30,}",
    "an AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a PyPI token": r"\bpypi-[A-Za-z0-9_-]{32,}",
    "a JSON Web Token": r"\beyJ[A-Za-z0-9_-]{8,400}\.eyJ[A-Za-z0-9_-]{8,}",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY",
    "a password in a URL": r"[a-z][a-z0-9+.-]{0,20}://[^/\s:@]+:[^/\s@]+@",
    "a bearer token": r"(?i)\bbearer [A-Za-z0-9._~+/-]{16,}",
}
_SHAPE: Final = {what: re.compile(pattern) for what, pattern in _SHAPES.items()}
_PLAIN: Final = re.compile(r"(?i)[0-9.]{0,9}|true|false|none|on|off")


def secret_value(value: str) -> str:
    """Return what a text looks like that must not be shown, or nothing.

    Example:
        >>> secret_value("https://me:hunter2@example.org/x"), secret_value("level_zero:0,1")
        ('a password in a URL', '')
    """
    return next((what for what, pattern in _SHAPE.items() if pattern.search(value)), "")


def secret_variable(name: str, value: str) -> str:
    """Return why a variable must not be shown, or nothing.

    Example:
        >>> secret_variable("HF_TOKEN", "x1y2"), secret_variable("LAGUNA_NUM_SPECULATIVE_TOKENS", "11")
        ('its name says so', '')
    """
    if _NAMES.search(name.upper()) and not _PLAIN.fullmatch(value):
        return "its name says so"
    return secret_value(value)


def shown_arguments(argv: Iterable[str]) -> tuple[str, ...]:
    """Return arguments in which those that look like secrets are withheld.

    Example:
        >>> shown_arguments(["serve", "--api-key", "abc", "--token=def", "--max-tokens", "5"])
        ('serve', '--api-key', '<withheld>', '--token=<withheld>', '--max-tokens', '5')
    """
    shown, after = [], False
    for word in argv:
        name, equals, _ = word.partition("=")
        named = _OPTIONS.fullmatch(name) is not None
        if after and not word.startswith("-"):
            shown.append(WITHHELD)
        elif named and equals:
            shown.append(f"{name}={WITHHELD}")
        else:
            shown.append(WITHHELD if secret_value(word) else word)
        after = named and not equals
    return tuple(shown)


def allowed(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a variable fits one of the patterns.

    Example:
        >>> allowed("VLLM_USE_V1", USUAL), allowed("SSH_AUTH_SOCK", USUAL)
        (True, False)
    """
    return any(fnmatchcase(name, pattern) for pattern in patterns)
