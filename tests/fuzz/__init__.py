"""Fuzzing of every decoder: what may come in, how it is run, and what was found."""
