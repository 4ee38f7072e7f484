"""Recipes: what is refused, with its line and reason, and what a filled one is."""

import contextlib
import re
import time
from pathlib import Path

import pytest

from provstore.errors import NewerFormatError, RecipeError
from provstore.runs.filling import Filled, fill
from provstore.runs.reading import load_recipe

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RECIPES = ["laguna-s-2.1/recipe-102.toml", "vllm-cpu/recipe.toml", "batch/recipe.toml"]

SERVICE = """format = "provstore/recipe/v1"
name = "r"
mode = "service"

[variable.venv]
type = "directory"
default = "/opt/venv"

[variable.port]
type = "port"
default = 18080

[command]
argv = [
  "{venv}/bin/serve",
  "--port", "{port}",
]

[environment]
forbidden = ["LD_*"]

[environment.set]
LANG = "C.UTF-8"

[environment.private]
HOME = "home"

[service]
port = "{port}"

[suite]
path = "/data/suite.json"
model = "m"
prompts = 13
max_tokens = 512

[[pin]]
role = "runtime/python"
path = "{venv}/bin/python"
sha256 = "DIGEST"
""".replace("DIGEST", "ab" * 32)


def filled(text: str = SERVICE, **values: str) -> Filled:
    return fill(load_recipe(text.encode(), "r.toml"), values, run="/run/x", home="/home/x")


def refused(old: str, new: str) -> tuple[int, str]:
    """Return line and reason of the refusal of a recipe in which one text was replaced."""
    assert SERVICE.count(old) == 1
    with pytest.raises(RecipeError) as caught:
        load_recipe(SERVICE.replace(old, new).encode(), "r.toml")
    line = re.fullmatch(r"r\.toml:(\d+)", caught.value.where)
    assert line, caught.value
    return int(line[1]), caught.value.reason


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize("name", RECIPES)
def test_the_shipped_recipes_are_valid(name: str) -> None:
    recipe = load_recipe(EXAMPLES.joinpath(name).read_bytes(), name).recipe
    assert recipe.output
    assert recipe.stop.signals[-1].signal == "KILL"


def test_variables_are_filled_in_everywhere() -> None:
    found = filled(port="9000")
    assert found.recipe.command.argv == ("/opt/venv/bin/serve", "--port", "9000")
    assert found.recipe.command.directory == "/run/x"
    assert found.recipe.service is not None
    assert found.recipe.service.port == "9000"
    assert found.recipe.pin[0].path == "/opt/venv/bin/python"
    assert found.variables == {"run": "/run/x", "recipe": "/home/x", "venv": "/opt/venv", "port": "9000"}


def test_json_in_an_argument_is_left_as_it_is() -> None:
    text = SERVICE.replace('"--port", "{port}",', """'{"method": "ngram", "n": [3]}', "a;b", "x>y",""")
    assert filled(text).recipe.command.argv[1:] == ('{"method": "ngram", "n": [3]}', "a;b", "x>y")


PROGRAMS = {
    "serve": "relative",
    "./serve": "relative",
    "bin/serve": "relative",
    "/opt/../bin/serve": "upwards",
    "/bin/sh": "sh is a shell",
    "/usr/bin/bash": "bash is a shell",
    "{venv}/bin/zsh": "zsh is a shell",
    "/usr/bin/env": "takes a program from PATH",
    "/usr/bin/sudo": "somebody else",
    "/usr/bin/setsid": "leaves the group",
    "{port}": "type port",
    "~/bin/serve": "relative",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_is_refused(program: str) -> None:
    line, reason = refused("{venv}/bin/serve", program)
    assert line == line_of(SERVICE, "{venv}/bin/serve")
    assert PROGRAMS[program] in reason


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("|", "syntax of a shell"),
        ("&&", "syntax of a shell"),
        (";", "syntax of a shell"),
        (">log", "syntax of a shell"),
        ("2>&1", "syntax of a shell"),
        ("2>/dev/null", "syntax of a shell"),
        ("<input.txt", "syntax of a shell"),
        ("$(date)", "holds $(...)"),
        ("--dir=$HOME", "holds $..."),
        ("${HOME}/x", "holds $..."),
        ("`id`", "holds `...`"),
        ("~/models", "begins with ~"),
        ("{nothing}", "no variable is called 'nothing'"),
        ("a\\u0000b", "NUL"),
        ("hf_" + "a" * 30, "Hugging Face token"),
        ("https://me:pass@example.org", "password in a URL"),
    ],
)
def test_an_argument_that_is_refused_with_its_line(word: str, reason: str) -> None:
    line, said = refused('"--port", "{port}",', f'"--port", "{{port}}",\n  "{word}",')
    assert reason in said
    argv = line_of(SERVICE, "argv = [")  # the line of a NUL byte cannot be looked for
    assert line == (argv if "\\u" in word else line_of(SERVICE, '"--port"') + 1)


REFUSALS = [
    ('name = "r"', 'name = "r s"', "name = ", "a name is letters"),
    ('mode = "service"', 'mode = "daemon"', "mode = ", "Invalid enum value"),
    ('type = "port"', 'type = "number"', 'type = "number"', "Invalid enum value"),
    ("default = 18080", "default = 0", "default = 0", "no port from 1 to 65535"),
    ("default = 18080", 'default = "x"', 'default = "x"', "no whole number"),
    ('default = "/opt/venv"', 'default = "opt"', 'default = "opt', "no absolute path"),
    ('default = "/opt/venv"', 'default = "/opt/{port}"', 'default = "/opt', "another variable"),
    ("[variable.port]", "[variable.run]", "[variable.run]", "always there"),
    ('LANG = "C.UTF-8"', 'LANG = "C"\nHF_TOKEN = "abc"', "HF_TOKEN", "would be a secret"),
    ('LANG = "C.UTF-8"', '"A-B" = "C"', '"A-B"', "no name of a variable"),
    ('LANG = "C.UTF-8"', "LANG = 1", "LANG = 1", "Expected `str`"),
    ('HOME = "home"', 'HOME = "/home"', "HOME = ", "relative path"),
    ('HOME = "home"', 'HOME = "../home"', "HOME = ", "relative path"),
    ('HOME = "home"', 'LANG = "home"', 'LANG = "home"', "set in two ways"),
    ('forbidden = ["LD_*"]', 'forbidden = ["*"]', "forbidden", "no pattern of names"),
    ('forbidden = ["LD_*"]', 'inherit = ["HF_TOKEN"]', "inherit", "cannot be inherited"),
    ('port = "{port}"\n\n[suite]', 'port = "8x"\n\n[suite]', 'port = "8x"', "no port"),
    ("prompts = 13", "prompts = 0", "prompts = 0", "proves nothing"),
    ("prompts = 13", "prompts = 13\nretries = 2", "retries", "unknown field `retries`"),
    ('role = "runtime/python"', 'role = "../x"', "role = ", "unsafe"),
    ("ab" * 32, "ab", "sha256 = ", "hex"),
]


@pytest.mark.parametrize(("old", "new", "where", "reason"), REFUSALS)
def test_what_is_refused_with_its_line(old: str, new: str, where: str, reason: str) -> None:
    line, said = refused(old, new)
    assert reason in said
    assert line == line_of(SERVICE.replace(old, new), where)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[suite]", "a service needs"),
        ('[[pin]]\nrole = "runtime/python"', "is there twice"),
    ],
)
def test_what_is_missing_or_there_twice(text: str, reason: str) -> None:
    if text == "[suite]":
        changed = SERVICE.replace(SERVICE[SERVICE.index("[suite]") : SERVICE.index("[[pin]]")], "")
    else:
        changed = SERVICE + SERVICE[SERVICE.index("[[pin]]") :]
    with pytest.raises(RecipeError, match=reason):
        load_recipe(changed.encode(), "r.toml")


def test_more_sections_that_contradict_themselves() -> None:
    for text, reason in (
        ('[stop]\nsignals = [{ signal = "TERM", wait_s = 1 }]', "last signal is KILL"),
        ("[stop]\nsignals = []", "last signal is KILL"),
        ('[idle]\ncapture = "x"\nsnapshots = 1\ninterval_s = 1', "no capture is called"),
        ("[idle]\nsnapshots = 0\ninterval_s = 1", "needs one snapshot"),
        ('[[source]]\nrole = "s"\npath = "/s"\ncommit = "main"', "no full commit id"),
        ('[[packages]]\nrole = "p"\nenvironment = "/p"\nversions = {}', "names no version"),
        ('[[host.device]]\naddress = "23:00.0"\nid = "8086:e223"', "no PCI address"),
        ('[[host.device]]\naddress = "0000:23:00.0"\nid = "0x8086"', "no vendor:device"),
        ('[[host.mount]]\npath = "/x"', "neither device nor type"),
        ('[[output]]\nrole = "o"\nkind = "file"\npath = "../o"', "below the run's own"),
        ('[[capture]]\nname = "c"\nargv = ["lspci"]', "relative"),
        ('[[capture]]\nname = "c/d"\nargv = ["/bin/lspci"]', "no name of its own"),
        ('[[capture]]\nname = "c"\nargv = []', "argv is empty"),
    ):
        with pytest.raises(RecipeError, match=reason) as caught:
            load_recipe(f"{SERVICE}\n{text}\n".encode(), "r.toml")
        assert int(caught.value.where.rpartition(":")[2]) > SERVICE.count("\n"), text


def test_a_batch_command_has_no_service() -> None:
    changed = SERVICE.replace('mode = "service"', 'mode = "batch"')
    with pytest.raises(RecipeError, match="a batch command has no service") as caught:
        load_recipe(changed.encode(), "r.toml")
    assert caught.value.where == f"r.toml:{line_of(SERVICE, '[service]')}"


def test_values_of_variables_are_typed() -> None:
    for values, reason in (
        ({"ports": "1"}, "no variable is called 'ports'; there are venv, port"),
        ({"port": "http"}, "no whole number"),
        ({"port": "70000"}, "no port from 1 to 65535"),
        ({"venv": "relative"}, "no absolute path"),
        ({"venv": "/a/../b"}, "no absolute path"),
        ({"venv": "/a/{port}"}, "taken as it is"),
        ({"venv": "/a\n/b"}, "one line"),
    ):
        with pytest.raises(RecipeError, match=re.escape(reason)):
            filled(**values)


def test_a_variable_without_a_value_must_be_given() -> None:
    with pytest.raises(RecipeError, match="variable port has no value; give --set port=") as caught:
        filled(SERVICE.replace("default = 18080\n", ""))
    assert caught.value.where == f"r.toml:{line_of(SERVICE, '[variable.port]')}"


def test_a_variable_cannot_bring_a_shell_in() -> None:
    text = SERVICE.replace('"{venv}/bin/serve"', '"{venv}"').replace('default = "/opt/venv"\n', "")
    with pytest.raises(RecipeError, match="bash is a shell"):
        filled(text, venv="/bin/bash")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff", "not UTF-8"),
        (b"name = ", "no TOML"),
        (b"name = 'x'", "needs format"),
        (b"a" * ((1 << 20) + 1), "larger than any recipe"),
        (b"a" + b".a" * 200 + b" = 1", "dots in a key"),
    ],
)
def test_what_is_no_recipe(data: bytes, reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        load_recipe(data, "r.toml")


def test_another_version_is_newer() -> None:
    with pytest.raises(NewerFormatError):
        load_recipe(b'format = "provstore/recipe/v2"', "r.toml")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 900_000,
        "-eyJ" * 200_000,
        "a://b:" * 150_000,
        "-----BEGIN A" * 70_000,
        "{a" * 400_000,
        "$" * 900_000,
        "../" * 300_000,
        "--token" * 100_000,
    ],
)
def test_a_hostile_text_costs_no_time(text: str) -> None:
    began = time.process_time()
    for place in ('"--port", "{port}",', 'LANG = "C.UTF-8"', 'HOME = "home"', "name = "):
        new = f'{place.partition(" = ")[0]} = "{text}"' if " = " in place else f'"{text}",'
        with contextlib.suppress(RecipeError):
            load_recipe(SERVICE.replace(place, new, 1).encode(), "r.toml")
    assert time.process_time() - began < 20


def test_nesting_without_end_is_refused() -> None:
    for text in ("x = " + "[" * 100_000, "[" + "a." * 90 + "a]", "x = {" + "a = {" * 5_000):
        with pytest.raises(RecipeError):
            load_recipe(f"{SERVICE}\n{text}\n".encode(), "r.toml")


def test_the_key_of_a_table_is_found_among_many_at_little_cost() -> None:
    names = "".join(f'K{number} = "v"\n' for number in range(10_000))
    text = SERVICE.replace('LANG = "C.UTF-8"\n', f"{names}LANG = 1\n")
    with pytest.raises(RecipeError, match="Expected `str`") as caught:
        load_recipe(text.encode(), "r.toml")
    assert caught.value.where == f"r.toml:{line_of(text, 'LANG = 1')}"
