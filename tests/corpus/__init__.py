"""The conformance corpus, which the package carries as `kiln_check.corpus`."""
