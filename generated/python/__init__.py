# Made from ksy/kiln_v2.ksy by tools/generate.py; edit the .ksy, not this file.
