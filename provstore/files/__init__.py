"""Files as they lie on a disk: checksum files, stand-ins, and inspectors that turn bytes into facts."""
