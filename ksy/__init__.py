"""The layout of Kiln v2 for the Kaitai compiler, which the package carries as `kiln_check.ksy`."""
