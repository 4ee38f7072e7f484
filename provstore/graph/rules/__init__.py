"""Rules that documents of the field must keep; pure functions from documents to findings."""
