"""Sound checkpoints broken in every way that applies, to see what `kiln check` notices.

Nothing here knows the checker's own tables: what a module is and which of them are
quantized is told from names and dtypes alone.
"""
