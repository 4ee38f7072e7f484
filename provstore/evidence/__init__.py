"""Readers of the field's formats, from bytes to typed facts, and the metrics that are recomputed from them.

Everything here is pure: bytes (or chunks of bytes) and data in, frozen values out. Nothing is remembered
between calls, nothing is read but the argument, and no rule of one lab is built in: markers, limits and
definitions come from the caller.
"""
