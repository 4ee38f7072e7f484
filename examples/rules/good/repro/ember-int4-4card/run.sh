#!/bin/sh
exec python -m server --tp 4
