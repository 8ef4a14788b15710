"""The pages on Kiln v2, which the package carries as `kiln_check.docs`."""
