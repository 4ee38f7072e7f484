"""Values that must not be captured, and those that look alike and must be."""

import pytest

from provstore.host.secrets import secret_value, secret_variable, shown_arguments

REFUSED = [
    ("HF_TOKEN", "anything"),
    ("HUGGING_FACE_HUB_TOKEN", "x"),
    ("VLLM_API_KEY", "local"),
    ("AWS_SECRET_ACCESS_KEY", "abc"),
    ("DB_PASSWORD", "hunter2"),
    ("PLAIN", "hf_" + "a1" * 10),
    ("PLAIN", "ghp_" + "b" * 36),
    ("PLAIN", "sk-proj-" + "c" * 30),
    ("PLAIN", "AKIA" + "A" * 16),
    ("PLAIN", "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln"),
    ("PIP_INDEX_URL", "https://me:hunter2@example.org/simple"),
    ("PLAIN", "-----BEGIN OPENSSH PRIVATE KEY-----"),
    ("HEADERS", "Authorization: Bearer abcdefghijklmnop"),
]

KEPT = [
    ("LAGUNA_DFLASH_NUM_SPECULATIVE_TOKENS", "11"),
    ("VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD", "256"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("MAX_TOKEN", "512"),
    ("ONEAPI_DEVICE_SELECTOR", "level_zero:0,1,2,3"),
    ("LD_LIBRARY_PATH", "/opt/a/lib:/opt/b/lib"),
    ("URL", "http://127.0.0.1:18080/v1"),
    ("GIT", "git@example.org:me/repository"),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_secret_is_known(name: str, value: str) -> None:
    assert secret_variable(name, value)


@pytest.mark.parametrize(("name", "value"), KEPT)
def test_what_only_looks_like_one_is_kept(name: str, value: str) -> None:
    assert secret_variable(name, value) == ""


def test_arguments_lose_their_secrets_and_keep_their_number() -> None:
    argv = [
        "serve",
        "--api-key",
        "k1",
        "--hf-token=k2",
        "--header",
        "hf_" + "a" * 20,
        "--max-num-tokens",
        "5",
    ]
    shown = shown_arguments(argv)
    assert len(shown) == len(argv)
    assert shown[1:6] == ("--api-key", "<withheld>", "--hf-token=<withheld>", "--header", "<withheld>")
    assert shown[6:] == ("--max-num-tokens", "5")


def test_a_shape_inside_a_longer_text() -> None:
    assert secret_value("x=1 token hf_" + "Z" * 30 + " y") == "a Hugging Face token"
