"""A content-addressed provenance store for LLM benchmark evidence."""
