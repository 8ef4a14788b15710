"""Why the headers of a checkpoint can't show a break."""

from __future__ import annotations

from collections.abc import Callable

from tools.breaking import hidden_dtypes, hidden_removals, hidden_settings, hidden_shapes
from tools.breaking.breaks import Break


def reason_for(broken: Break) -> str | None:
    """The reason why headers can't show a break; None where they can."""
    return next((reason for holds, reason in UNSEEABLE if holds(broken)), None)


def takes_as_much(broken: Break) -> bool:
    """Whether a tensor of a GGUF file takes as many bytes as before."""
    return broken.padded


UNSEEABLE: tuple[tuple[Callable[[Break], bool], str], ...] = (
    (
        hidden_shapes.fits_its_scales,
        "The scales are for the whole matrix or for its rows: they fit the changed weight as they fitted the "
        "old, and only the model's code knows its shape.",
    ),
    (
        hidden_shapes.has_as_many_blocks,
        "The last block of a row or of a column need not be whole: as many scales cover the changed weight.",
    ),
    (
        hidden_shapes.fits_its_columns,
        "EETQ and fbgemm's experts have a row for each input and a scale for each output: nothing else "
        "that is stored has as many elements as there are inputs.",
    ),
    (
        hidden_shapes.fills_as_many_tiles,
        "torchao pads MX scales to tiles of 128 rows and 4 columns: as many tiles cover the changed weight.",
    ),
    (
        hidden_shapes.rounds_groups_up,
        "compressed-tensors rounds the number of groups up: the last of a row need not be whole where no "
        "elements are packed.",
    ),
    (
        hidden_shapes.has_rows_of_any_length,
        "quanto stores a group in a row, or the weight's own row where it is not divided, and nothing says "
        "which: a row of any length has one scale.",
    ),
    (
        hidden_shapes.is_one_for_each_expert,
        "Experts in one tensor have one scale for all or one for each, and there are two experts.",
    ),
    (
        hidden_shapes.is_of_another_matrix,
        "SDNQ packs a weight in one run, without its rows and columns: with a tensor of another matrix the "
        "module is one of another shape.",
    ),
    (hidden_dtypes.is_cast, "A loader casts floats: the same numbers in another float dtype are sound."),
    (
        hidden_dtypes.holds_powers_of_two,
        "F32 holds every number of E8M0, and tools write such scales in it too.",
    ),
    (
        hidden_dtypes.is_unconverted,
        "transformers writes a float weight beside a scale of blocks where it leaves a module unconverted.",
    ),
    (
        hidden_dtypes.holds_pairs,
        "Two 4-bit elements share a byte: I8 and U8 are two names of the same bytes.",
    ),
    (hidden_dtypes.is_a_width, "HQQ writes the bits of an element as an integer or as a float."),
    (
        hidden_removals.is_of_activations,
        "Inputs and outputs can be quantized with scales that are computed on the fly: a checkpoint without "
        "stored ones is sound, and its config does not say that they are stored.",
    ),
    (
        hidden_removals.is_of_the_cache,
        "A checkpoint without scales of the key-value cache is sound where its config says nothing of them.",
    ),
    (
        hidden_removals.is_an_order_of_columns,
        "Columns in their own order need no g_idx, and loaders take none for that.",
    ),
    (hidden_removals.is_a_label, "Without its labels the checkpoint is one of another tool."),
    (hidden_removals.is_a_second_label, "The file's metadata gives the module's format a second time."),
    (
        hidden_removals.may_be_folded,
        "ModelOpt multiplies a pre_quant_scale into the layer before where it can, and then stores none; no "
        "config says for which modules.",
    ),
    (
        hidden_removals.is_of_training,
        "FP-Quant rotates gradients with this matrix; weights are read without it, and the config says that "
        "gradients are not quantized.",
    ),
    (
        hidden_removals.is_always_zero,
        "The zero points of symmetric weights are all 0: a dense checkpoint is read without them, or with "
        "them in any dtype.",
    ),
    (
        hidden_settings.is_longer_than_rows,
        "A row that is no longer than a group is one group, by both sizes, in each module that takes them.",
    ),
    (
        hidden_settings.holds_any_width,
        "Elements in I8 or in floats, one each, can be of any width: 4-bit integers are stored so too.",
    ),
    (
        hidden_settings.is_taken_by_none,
        "Each quantized module has an entry of its own in the config: none takes what is for all others.",
    ),
    (
        hidden_settings.is_in_metadata,
        "The file's metadata says how each module is packed, and loaders of torchao go by it.",
    ),
    (
        hidden_settings.stores_the_same,
        "The tool stores the same tensors for both: they differ in what the inputs are cast to (ModelOpt's "
        "MXFP4), or in the sign of an element (Quark's int4).",
    ),
    (takes_as_much, "The payload takes as many bytes as before, with those that pad it to its alignment."),
)
"""What must hold of a break that is missed, and then why headers can't show it."""
