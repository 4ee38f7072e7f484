"""Specs: every refusal, with the place it names; variables; what a good one may say."""

from pathlib import Path
from typing import Any

import pytest
from workbench import SPEC, listed, packet_of, plant, seal_text

from provstore.errors import MalformedError, NewerFormatError, ProvError, SpecError
from provstore.store.memory import MemoryStore
from provstore.verbs.diffing import diff, side
from provstore.verbs.listing import show_packet
from provstore.verbs.spec import is_spec, load_spec

ENTRY = '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "t"\n'
DECLARED = '[[entry]]\nrole = "d"\nkind = "file"\nkeep = "declared"\n'
CLAIM = '[[claim]]\nname = "c"\nvalue = "1"\nunit = "u"\nmetric = "m"\nconvention = "v"\nevidence = ["e"]\n'
SCOPE = """
[scope]
at = { cards = 4, kv = "bfloat16", eager = false, ratio = "0.80" }
described_as = ["family-packet:fam/one"]
[[scope.rule]]
claim = "performance"
preserve = ["kv", "cards", "kv"]
statement = "Numbers hold for this topology."
evidence = ["e"]
"""
SHA = "0" * 64
COMMIT = "0" * 40


def load(text: str, **variables: str) -> Any:
    return load_spec(text.encode(), "x.toml", variables)


REFUSED: list[tuple[str, str, str]] = [
    # What the text is, where the refusal points, a word of its reason.
    (SPEC, "x.toml", "entry"),
    ("", "x.toml", "format"),
    ("a = ", "x.toml", "TOML"),
    (SPEC.replace('name = "run"\n', "") + ENTRY, "x.toml", "name"),
    (SPEC.replace('"run"', "7") + ENTRY, "x.toml", "name"),
    (SPEC + "other = 1\n" + ENTRY, "x.toml", "other"),
    (SPEC + ENTRY + "colour = 1\n", "x.toml:3", "colour"),
    (SPEC + ENTRY + ENTRY.replace('"e"', '"f"') + 'kind = "evidence"\n', "x.toml", "TOML"),
    (SPEC + ENTRY.replace("evidence", "evidance"), "x.toml:3", "evidance"),
    (SPEC + ENTRY + ENTRY, "x.toml:7", "twice"),
    (SPEC + ENTRY + SCOPE.replace('"0.80"', "0.80"), "x.toml", "float"),
    (SPEC + ENTRY + SCOPE.replace("cards = 4", "cards = 9007199254740993"), "x.toml", "2**53"),
    (SPEC + ENTRY + SCOPE.replace("cards = 4", '"a=b" = 4'), "x.toml", "dimension"),
    (SPEC + ENTRY + SCOPE.replace('"cards"', '""'), "x.toml", "dimension"),
    (SPEC + ENTRY + SCOPE.replace('"performance"', '"speed"'), "x.toml", "speed"),
    (SPEC + ENTRY + SCOPE.replace('["e"]', '["f"]'), "x.toml", "which is no role"),
    (SPEC + ENTRY + SCOPE.replace("statement", "sentence"), "x.toml", "sentence"),
    (SPEC + ENTRY + SCOPE.replace("family-packet:fam/one", "fam/one"), "x.toml", "names no node"),
    (SPEC + ENTRY + ENTRY.replace('"e"', '"e/f"'), "x.toml:7", "below"),
    (SPEC + ENTRY.replace('"e"', '"e/f"') + ENTRY, "x.toml:3", "below"),
    (SPEC + ENTRY.replace('"e"', '"../e"'), "x.toml:3", "unsafe"),
    (SPEC + ENTRY.replace('"e"', '"/e"'), "x.toml:3", "unsafe"),
    (SPEC + ENTRY.replace('"e"', '""'), "x.toml:3", "unsafe"),
    (SPEC + ENTRY.replace('"e"', '"a\\u001bb"'), "x.toml:3", "shown"),
    (SPEC + ENTRY.replace('path = "t"\n', ""), "x.toml:3", "path"),
    (SPEC + ENTRY + 'keep = "somewhere"\n', "x.toml:3", "somewhere"),
    (SPEC + ENTRY + 'keep = "declared"\n', "x.toml:3", "declared"),
    (SPEC + DECLARED, "x.toml:3", "declares nothing"),
    (SPEC + ENTRY + DECLARED, "x.toml:7", "declares nothing"),
    (SPEC + ENTRY + "values = { a = 1 }\n", "x.toml:3", "values"),
    (SPEC + DECLARED + "values = { a = 1.5 }\n", "x.toml:3", "a"),
    (SPEC + DECLARED + "values = { a = 9007199254740993 }\n", "x.toml:3", "2**53"),
    (SPEC + ENTRY + "size_bytes = 3\n", "x.toml:3", "size_bytes"),
    (SPEC + DECLARED + f'sha256 = "{SHA}"\nsize_bytes = -1\n', "x.toml:3", "size_bytes"),
    (SPEC + DECLARED + f'sha256 = "{SHA}"\nsize_bytes = 9007199254740993\n', "x.toml:3", "2**53"),
    (SPEC + ENTRY + 'prefix = "int4/"\n', "x.toml:3", "prefix"),
    (SPEC + ENTRY + f'manifest = "m"\nsha256 = "{SHA}"\n', "x.toml:3", "manifest"),
    (SPEC + ENTRY + f'manifest = "m"\nblake3 = "{SHA}"\n', "x.toml:3", "manifest"),
    (SPEC + ENTRY + 'sha256 = "abc"\n', "x.toml:3", "sha256"),
    (SPEC + ENTRY + f'blake3 = "{SHA[:-1]}G"\n', "x.toml:3", "blake3"),
    (SPEC + ENTRY + f'sha256 = "{"A" * 64}"\n', "x.toml:3", "sha256"),
    (SPEC + ENTRY + f'commit = "{COMMIT}"\n', "x.toml:3", "source-tree"),
    (SPEC + ENTRY.replace("evidence", "source-tree") + 'commit = "abc"\n', "x.toml:3", "full"),
    (SPEC + ENTRY + 'hub = "o/m"\nrevision = "main"\n', "x.toml:3", "can move"),
    (SPEC + ENTRY + f'revision = "{COMMIT}"\n', "x.toml:3", "hub"),
    (SPEC + ENTRY + 'hub = "o/m"\nurl = "https://x"\n', "x.toml:3", "more than one"),
    (SPEC + ENTRY.replace('"t"', '"{where}/t"'), "x.toml:3", "where"),
    (SPEC + ENTRY + 'manifest = "{where}/t.sum"\n', "x.toml:3", "where"),
    (SPEC + ENTRY + CLAIM.replace('"e"', '"f"'), "x.toml", "no role"),
    (SPEC + ENTRY + CLAIM.replace('"e"', '"ef"'), "x.toml", "no role"),
    (SPEC + ENTRY + CLAIM.replace('"1"', "1.0"), "x.toml", "value"),
    (SPEC + ENTRY + CLAIM + CLAIM, "x.toml", "twice"),
    ('parents = ["abc"]\n' + SPEC + ENTRY, "x.toml", "parents"),
    (SPEC + ENTRY + "exclude = 'x'\n", "x.toml:3", "exclude"),
    (SPEC + "entry = 3\n", "x.toml", "entry"),
    (SPEC + ENTRY.replace('"t"', '""'), "x.toml:3", "path"),
    (SPEC + ENTRY.replace('"t"', '"a\\u0000b"'), "x.toml:3", "NUL"),
    (SPEC + ENTRY + 'manifest = "a\\u0000b"\n', "x.toml:3", "NUL"),
]


@pytest.mark.parametrize(("text", "place", "word"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_each_refusal_names_its_place_and_its_reason(text: str, place: str, word: str) -> None:
    with pytest.raises(MalformedError) as raised:
        load(text)
    assert raised.value.exit_code == 2
    assert raised.value.message.startswith(place)
    assert word in raised.value.message


@pytest.mark.parametrize("text", ["[" * 5000, "x = " + "[" * 5000, "a." * 3000 + "b = 1", "\0", "a = \ud800"])
def test_odd_text_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(SpecError):
        load_spec(text.encode("utf-8", "surrogatepass"), "x.toml", {})


def test_other_formats_are_named() -> None:
    with pytest.raises(NewerFormatError, match="packet-spec/v2"):
        load(SPEC.replace("v1", "v2") + ENTRY)
    with pytest.raises(NewerFormatError):
        load('format = "something"\n')
    with pytest.raises(SpecError):
        load("format = 3\n")


def test_a_huge_spec_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(SpecError, match="larger"):
        load("#" * ((16 << 20) + 1))


@pytest.mark.parametrize("kind", ["fifo", "directory", "absent", "unsafe"])
def test_a_spec_that_is_no_file(tmp_path: Path, kind: str) -> None:
    import os

    from workbench import at_most

    from provstore.verbs.sealing import seal_spec

    path = tmp_path / "spec.toml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    with at_most(10), pytest.raises(ProvError):
        seal_spec(MemoryStore(), "a\0b" if kind == "unsafe" else path)


def test_a_refused_spec_leaves_nothing(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    store = MemoryStore()
    with pytest.raises(SpecError):
        seal_text(store, tmp_path, ENTRY + "colour = 1\n")
    assert (store.refs(), list(store.objects()), list(store.records())) == ([], [], [])


# Variables


def test_variables_are_filled_in_and_are_no_part_of_the_identity(tmp_path: Path) -> None:
    plant(tmp_path / "one/t", {"f": "x"})
    plant(tmp_path / "two/t", {"f": "x"})
    text = ENTRY.replace('"t"', '"{where}/t"')
    packets = {
        seal_text(MemoryStore(), tmp_path, text, variables={"where": str(tmp_path / name)})
        for name in ("one", "two")
    }
    packets.add(seal_text(MemoryStore(), tmp_path, text, variables={"where": "one"}))
    assert len(packets) == 1


def test_braces_in_values_are_left_alone_and_values_are_not_expanded_again(tmp_path: Path) -> None:
    plant(tmp_path / "{b}", {"f": "x"})
    text = ENTRY.replace('"t"', '"{a}"')
    assert seal_text(MemoryStore(), tmp_path, text, variables={"a": "{b}"})


def test_a_variable_that_nothing_uses_is_a_mistake(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    with pytest.raises(SpecError, match="wher"):
        seal_text(MemoryStore(), tmp_path, ENTRY, variables={"wher": "x"})


# What a good spec may say


def test_paths_are_relative_to_the_spec_not_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / "t", {"f": "x"})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store = MemoryStore()
    assert listed(store, seal_text(store, tmp_path, ENTRY)).keys() == {"e/f"}


def test_the_order_of_entries_and_claims_changes_nothing(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    other = ENTRY.replace('"e"', '"a"')
    claims = CLAIM, CLAIM.replace('"c"', '"b"')
    first = seal_text(MemoryStore(), tmp_path, ENTRY + other + "".join(claims))
    assert seal_text(MemoryStore(), tmp_path, "".join(claims[::-1]) + other + ENTRY) == first


def test_digits_of_a_claim_stay_as_they_were_printed(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    store = MemoryStore()
    text = ENTRY + CLAIM.replace('"1"', '"102.97143559613157000"')
    (claim,) = packet_of(store, seal_text(store, tmp_path, text)).claims
    assert claim.value == "102.97143559613157000"


def test_what_is_a_spec() -> None:
    assert is_spec((SPEC + ENTRY).encode())
    assert is_spec(b"format = 'provstore/packet-spec/v9'\n")
    assert not is_spec(b'[tool]\nname = "x"\n')


def test_where_a_packet_stands_is_sealed_shown_and_compared(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    store = MemoryStore()
    packet = seal_text(store, tmp_path, ENTRY + SCOPE)
    scope = packet_of(store, packet).scope
    assert scope is not None
    assert scope.at == {"cards": 4, "kv": "bfloat16", "eager": False, "ratio": "0.80"}
    assert scope.rules[0].preserve == ("cards", "kv")
    card = show_packet(store, packet)
    assert card.scope == scope.at
    assert card.scope_rules == ("performance: preserve cards, kv. Numbers hold for this topology.",)
    assert card.described_as == ("family-packet:fam/one",)
    other = seal_text(store, tmp_path, ENTRY + SCOPE.replace("cards = 4", "cards = 2"))
    assert other != packet
    assert seal_text(store, tmp_path, ENTRY) not in (packet, other)
    with side(packet.hex(), store) as a, side(other.hex(), store) as b:
        changes = diff(a, b).identity
    assert [(c.key, c.from_, c.to) for c in changes] == [("scope.cards", "4", "2")]
