"""Policies as data, one module a family of gates, and verdicts over them.

Everything here is pure: a gate gets the facts that readers took out of sealed bytes and its own parameters,
and returns what it found. Nothing of one lab is built in: markers, counts, keys and floors come from the
policy. Absent evidence is ``UNKNOWN``: never a pass, and never a negative result.
"""
