import ctypes as ctypes
import hashlib as hashlib
import json as json
import tempfile as tempfile
import tomllib as tomllib
from hashlib import sha256 as sha256

import regex as regex
from prometheus_client.parser import text_string_to_metric_families as text_string_to_metric_families

PLACES: dict[str, tuple[str, str]]
