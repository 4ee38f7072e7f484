"""What people do with packets, one module a verb; functions that remember nothing between calls."""
