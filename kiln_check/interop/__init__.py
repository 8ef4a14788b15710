"""Checkpoints of other formats: checked, brought in, taken out.

`described` is what every reader gives: files and the tensors in them, from their
headers alone. `safetensors` and `gguf` read those headers, `checkpoint` puts the
files of one model together. `conventions` says which tensor is the scale of which,
`planning` makes of all this the tensors of one Kiln file, `checking` applies the
rules to the head of that file, `importing` writes it, and `exporting` gives the
files back. Nothing here knows a rule of the layout page.
"""

from __future__ import annotations
