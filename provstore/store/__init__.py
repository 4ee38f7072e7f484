"""Where bytes are kept: one small synchronous protocol, and the stores that implement it."""
