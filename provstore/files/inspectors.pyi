from provstore.files.git_state import GitState as GitState
from provstore.files.git_state import filtered as filtered
from provstore.files.git_state import git_facts as git_facts
from provstore.files.git_state import tracked as tracked
from provstore.files.inspect_bundle import bundle_problems as bundle_problems
from provstore.files.inspect_elf import inspect_elf as inspect_elf
from provstore.files.inspect_elf import is_elf as is_elf
from provstore.files.inspect_git import conversions as conversions
from provstore.files.inspect_git import inspect_git as inspect_git
from provstore.files.inspect_python import inspect_python_env as inspect_python_env
from provstore.files.inspect_safetensors import MAX_INDEX_BYTES as MAX_INDEX_BYTES
from provstore.files.inspect_safetensors import index_shards as index_shards
from provstore.files.inspect_safetensors import inspect_safetensors as inspect_safetensors
from provstore.files.inspect_text import text_facts as text_facts

PLACES: dict[str, tuple[str, str]]
