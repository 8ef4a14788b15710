"""The conformance cases of Kiln v2, one documented function each."""
