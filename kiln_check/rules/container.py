"""Rules 1 to 15: the header, the directory, the names, the payloads.

Each function judges one rule of the layout page, section "Rules", for the file
(`index` is None) or for one tensor, and returns a Fault or None. It may take for
granted what the rule's row in `table` says that it needs. `kiln rules NAME` prints
its docstring.
"""

from __future__ import annotations

import re

from kiln_check.constants import ALIGNMENT
from kiln_check.generated.kiln_v2_records import (
    DESCRIPTOR_SIZES,
    DTYPES,
    HEADER_SIZES,
    MAGIC,
    MAX_RANK,
    VERSION,
)
from kiln_check.rules.fault import Fault
from kiln_check.rules.view import View, element_count
from kiln_check.text import plural, quote

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
"""What no name may hold (layout page, "Rules", name-text)."""

FOREIGN_FIELDS = ("block_elements", "block_bytes", "foreign_tag")


def magic(view: View, _index: None) -> Fault | None:
    """The file starts with the eight bytes 89 4B 49 4C 4E 0D 0A 1A.

    Why: they tell a Kiln file from every other, and a file that was sent as text,
    whose line ends change, from one that was sent as it is.

    Fix: if this is a file of another format, convert it; if it was transferred as
    text, transfer it again as binary.
    """
    found = view.directory.magic
    if found == MAGIC[: len(found)]:
        return None
    return Fault(f"the file starts with {found.hex(' ')}, not with {MAGIC.hex(' ')}; it is not a Kiln file")


def version(view: View, _index: None) -> Fault | None:
    """The version is 2.

    Why: another version may lay the rest out in another way, so nothing after the
    version can be relied on. A header that is cut short is judged by its length.

    Fix: check the file with a tool for its version, or write it again as version 2.
    """
    found = view.directory.version
    if found in (None, VERSION):
        return None
    return Fault(f"version {found} is not {VERSION}, the only one that this layout describes")


def file_length(view: View, _index: None) -> Fault | None:
    """The file holds its header, directory and names, and is as long as len_file says.

    Why: a download that broke off, or bytes that were added, show here before any
    weight is read.

    Fix: transfer the file again; a writer sets len_file to the size of the whole
    file once all is written.
    """
    size = view.directory.size
    len_header = sum(HEADER_SIZES.values())
    if size < len_header:
        return Fault(f"the file has {plural(size, 'byte')}, and its header alone takes {len_header}")
    header = view.header
    end = view.directory.end_of_names
    working = (
        f"{len_header} + {sum(DESCRIPTOR_SIZES.values())} · {header.num_tensors} + {header.len_names} = {end}"
    )
    if size < end:
        return Fault(f"the file has {size} bytes; header, directory and names take {end}", working)
    if size != header.len_file:
        return Fault(f"the file has {size} bytes; its header says {header.len_file}")
    return None


def reserved(view: View, index: int | None) -> Fault | None:
    """Reserved fields are 0.

    Why: a later version may give them a meaning, and a reader of this version must
    not take such a file for one that it understands.

    Fix: write zeros. Data of your own belongs in a tensor, of dtype u8 if need be.
    """
    record = view.header if index is None else view.tensor(index)
    owner = "the header" if index is None else view.short_label(index)
    for field in ("reserved1", "reserved2"):
        value = getattr(record, field)
        if value if isinstance(value, int) else any(value):
            return Fault(f"{owner} has a reserved field that is not 0", field=field)
    return None


def name_range(view: View, index: int) -> Fault | None:
    """The name lies within the name pool.

    Why: a name that runs past the pool would be read from a payload.

    Fix: ofs_name + len_name must not pass len_names; a pool that was cut needs its
    names written again.
    """
    tensor = view.tensor(index)
    end = tensor.ofs_name + tensor.len_name
    if end <= view.header.len_names:
        return None
    return Fault(
        f"the name of tensor {index} ends at byte {end} of a name pool of {view.header.len_names}",
        f"{tensor.ofs_name} + {tensor.len_name} = {end}",
    )


def name_text(view: View, index: int) -> Fault | None:
    """The name is not empty, is UTF-8, and holds no control character.

    Why: names are shown to people, used as keys and put into commands; an empty or
    unprintable one can't be told apart or is a trap. The control characters are
    U+0000 to U+001F and U+007F to U+009F.

    Fix: give the tensor a name of printable text.
    """
    raw = view.directory.name_raw(index) or b""
    if not raw:
        return Fault(f"tensor {index} has an empty name")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return Fault(
            f"the name of tensor {index} is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}"
        )
    found = None if text.isprintable() else CONTROL.search(text)
    if found is None:
        return None
    code = f"U+{ord(found[0]):04X}"
    return Fault(f"the name of tensor {index}, {quote(text)}, holds the control character {code}")


def name_unique(view: View, index: int) -> Fault | None:
    """No two tensors have the same name.

    Why: a reader that looks a tensor up by its name would get one of the two, and
    which one would depend on the reader.

    Fix: rename one of them, or remove the copy.
    """
    first = view.first_with_name_of(index)
    if first == index:
        return None
    return Fault(f"{view.short_label(index)} has the name of tensor {first}")


def dtype(view: View, index: int) -> Fault | None:
    """The dtype is one of the table.

    Why: the code tells the width of an element; without a known one the payload is
    bits of unknown meaning.

    Fix: use a code of the layout page's table; blocks of another format's layout
    are `foreign`.
    """
    tensor = view.tensor(index)
    if tensor.dtype in DTYPES:
        return None
    return Fault(f"{view.short_label(index)} has the dtype 0x{tensor.dtype:04x}, which is not in the table")


def rank(view: View, index: int) -> Fault | None:
    """The rank is at most 8.

    Why: a descriptor has room for 8 dimensions.

    Fix: merge dimensions until there are 8 or fewer.
    """
    tensor = view.tensor(index)
    if tensor.rank <= MAX_RANK:
        return None
    return Fault(f"{view.short_label(index)} has rank {tensor.rank}; the greatest is {MAX_RANK}")


def shape_tail(view: View, index: int) -> Fault | None:
    """Entries of the shape from rank on are 0.

    Why: a number there means that rank and shape were not written by the same hand,
    and one of them is wrong.

    Fix: set rank to the number of dimensions and the entries after them to 0.
    """
    tensor = view.tensor(index)
    for entry in range(tensor.rank, MAX_RANK):
        length = tensor.shape[entry]
        if length:
            message = f"{view.short_label(index)} has rank {tensor.rank}, but shape[{entry}] is {length}"
            return Fault(message, entry=entry)
    return None


def foreign_block(view: View, index: int) -> Fault | None:
    """A foreign tensor says how large its blocks are, and holds whole blocks; no other does.

    Why: Kiln reads nothing inside a foreign block, so its size is all that there is
    to know the payload's length by. For every other dtype block_elements,
    block_bytes and foreign_tag are 0.

    Fix: for foreign, set block_elements and block_bytes from the other format's
    definition and pad the shape to whole blocks; otherwise set all three to 0.
    """
    tensor = view.tensor(index)
    if not tensor.is_foreign:
        for field in FOREIGN_FIELDS:
            if getattr(tensor, field):
                return Fault(
                    f"{view.label(index)} is not foreign, but its {field} is {getattr(tensor, field)}"
                )
        return None
    for field in FOREIGN_FIELDS[:2]:
        if not getattr(tensor, field):
            return Fault(f"{view.label(index)} has {field} 0")
    count = element_count(tensor)
    if count % tensor.block_elements == 0:
        return None
    return Fault(
        f"{view.label(index)} does not fill blocks of {plural(tensor.block_elements, 'element')}",
        f"{count} mod {tensor.block_elements} = {count % tensor.block_elements}",
    )


def data_length(view: View, index: int) -> Fault | None:
    """The payload is as long as its shape and dtype say.

    Why: the payload is the array. Too short, and a read ends in another tensor; too
    long, and the shape is not the one that was written.

    Fix: len_data is ceil(count · bits / 8), and for foreign
    count / block_elements · block_bytes.
    """
    tensor = view.tensor(index)
    count = element_count(tensor)
    if tensor.is_foreign:
        expected = count // tensor.block_elements * tensor.block_bytes
        working = f"{count} / {tensor.block_elements} · {tensor.block_bytes} = {expected}"
    else:
        expected = -(-count * tensor.element_bits // 8)
        working = f"ceil({count} · {tensor.element_bits} / 8) = {expected}"
    if tensor.len_data == expected:
        return None
    return Fault(
        f"{view.label(index)} needs {plural(expected, 'byte')}; len_data is {tensor.len_data}", working
    )


def data_align(view: View, index: int) -> Fault | None:
    """The payload starts at a multiple of 64.

    Why: then a mapped file can be used where it is, by vector instructions too.

    Fix: pad with zeros before the payload up to the next multiple of 64.
    """
    tensor = view.tensor(index)
    if tensor.ofs_data % ALIGNMENT == 0:
        return None
    owner = view.short_label(index)
    return Fault(
        f"the payload of {owner} starts at {tensor.ofs_data}, not at a multiple of {ALIGNMENT}",
        f"{tensor.ofs_data} mod {ALIGNMENT} = {tensor.ofs_data % ALIGNMENT}",
    )


def data_range(view: View, index: int) -> Fault | None:
    """The payload lies after the names and before the end of the file.

    Why: one that starts earlier would be the directory itself; one that ends later
    is not all there. The end is len_file, as written.

    Fix: if the file was cut, get it whole; a writer places payloads after
    64 + 128 · num_tensors + len_names.
    """
    tensor = view.tensor(index)
    if view.in_range(tensor):
        return None
    owner = view.short_label(index)
    head = view.directory.end_of_names
    if tensor.ofs_data < head:
        return Fault(f"the payload of {owner} starts at {tensor.ofs_data}; the names end at {head}")
    end = tensor.ofs_data + tensor.len_data
    return Fault(
        f"the payload of {owner} ends at {end}; len_file is {view.header.len_file}",
        f"{tensor.ofs_data} + {tensor.len_data} = {end}",
    )


def data_overlap(view: View, index: int) -> Fault | None:
    """No two payloads share a byte, unless they are one and the same range.

    Why: a write through one name would change the other. Tied weights share one
    whole payload, and that is fine. An empty payload shares nothing.

    Fix: give each tensor a range of its own, or both the very same one.
    """
    other = view.overlapped.get(index)
    if other is None:
        return None
    return Fault(
        f"the payload of {view.short_label(index)}, {_range_text(view, index)}, "
        f"shares bytes with that of {view.short_label(other)}, {_range_text(view, other)}"
    )


def _range_text(view: View, index: int) -> str:
    tensor = view.tensor(index)
    return f"{tensor.ofs_data} to {tensor.ofs_data + tensor.len_data - 1}"
