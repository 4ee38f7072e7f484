"""One reader a document format of the field: bytes in, relations and statements out."""
