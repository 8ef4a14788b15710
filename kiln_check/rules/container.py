"""Rules 1 to 15: the header, the directory, the names, the payloads.

Each is a rule of the layout page, section "Rules"; see `Rule` for what a declaration says.
"""

from __future__ import annotations

import re

from kiln_check.constants import ALIGNMENT, FOREIGN
from kiln_check.directory import LEN_DESCRIPTOR, LEN_HEADER
from kiln_check.generated.kiln_v2_records import MAGIC, MAX_RANK, VERSION
from kiln_check.rules.fault import Fault
from kiln_check.rules.measures import element_bits
from kiln_check.rules.rule import Rule, Subject, Truth
from kiln_check.rules.view import View
from kiln_check.text import plural, quote

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
"""What no name may hold (layout page, "Rules", name-text)."""

FOREIGN_FIELDS = ("block_elements", "block_bytes", "foreign_tag")


class Magic(Rule, name="magic", status="MAGIC", field="magic", needs=(), for_file=True, for_tensor=False):
    """The file starts with the eight bytes 89 4B 49 4C 4E 0D 0A 1A.

    Why: they tell a Kiln file from every other, and a file that was sent as text,
    whose line ends change, from one that was sent as it is.

    Fix: if this is a file of another format, convert it; if it was transferred as
    text, transfer it again as binary.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.magic == MAGIC[: len(t.magic)]

    @staticmethod
    def explain(view: View, _index: None) -> Fault:
        found = view.file.magic
        return Fault(
            f"the file starts with {found.hex(' ')}, not with {MAGIC.hex(' ')}; it is not a Kiln file"
        )


class Version(
    Rule, name="version", status="VERSION", field="version", needs=("magic",), for_file=True, for_tensor=False
):
    """The version is 2.

    Why: another version may lay the rest out in another way, so nothing after the
    version can be relied on. A header that is cut short is judged by its length.

    Fix: check the file with a tool for its version, or write it again as version 2.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.version in (None, VERSION)

    @staticmethod
    def explain(view: View, _index: None) -> Fault:
        return Fault(f"version {view.file.version} is not {VERSION}, the only one that this layout describes")


class FileLength(
    Rule,
    name="file-length",
    status="LENGTH",
    field="len_file",
    needs=("magic", "version"),
    for_file=True,
    for_tensor=False,
):
    """The file holds its header, directory and names, and is as long as len_file says.

    Why: a download that broke off, or bytes that were added, show here before any
    weight is read.

    Fix: transfer the file again; a writer sets len_file to the size of the whole
    file once all is written.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return (t.size >= LEN_HEADER) & (t.size >= t.end_of_names) & (t.size == t.len_file)

    @staticmethod
    def explain(view: View, _index: None) -> Fault:
        file = view.file
        if file.size < LEN_HEADER:
            return Fault(f"the file has {plural(file.size, 'byte')}, and its header alone takes {LEN_HEADER}")
        end = file.end_of_names
        if file.size < end:
            return Fault(
                f"the file has {file.size} bytes; header, directory and names take {end}",
                f"{LEN_HEADER} + {LEN_DESCRIPTOR} · {file.num_tensors} + {file.len_names} = {end}",
            )
        return Fault(f"the file has {file.size} bytes; its header says {file.len_file}")


class Reserved(Rule, name="reserved", status="TYPE", field="reserved1", for_file=True):
    """Reserved fields are 0.

    Why: a later version may give them a meaning, and a reader of this version must
    not take such a file for one that it understands.

    Fix: write zeros. Data of your own belongs in a tensor, of dtype u8 if need be.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return (t.reserved1 == 0) & (t.reserved2 == 0)

    @staticmethod
    def explain(view: View, index: int | None) -> Fault:
        record = view.file if index is None else view.tensor(index)
        owner = "the header" if index is None else view.short_label(index)
        field = "reserved1" if record.reserved1 else "reserved2"
        return Fault(f"{owner} has a reserved field that is not 0", field=field)


class NameRange(Rule, name="name-range", status="NAME", field="ofs_name"):
    """The name lies within the name pool.

    Why: a name that runs past the pool would be read from a payload.

    Fix: ofs_name + len_name must not pass len_names; a pool that was cut needs its
    names written again.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return (t.ofs_name <= t.file.len_names) & (t.len_name <= t.file.len_names - t.ofs_name)

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        end = tensor.ofs_name + tensor.len_name
        return Fault(
            f"the name of tensor {index} ends at byte {end} of a name pool of {view.file.len_names}",
            f"{tensor.ofs_name} + {tensor.len_name} = {end}",
        )


class NameText(
    Rule, name="name-text", status="NAME", field="ofs_name", needs=("name-range",), on_columns=False
):
    """The name is not empty, is UTF-8, and holds no control character.

    Why: names are shown to people, used as keys and put into commands; an empty or
    unprintable one can't be told apart or is a trap. The control characters are
    U+0000 to U+001F and U+007F to U+009F.

    Fix: give the tensor a name of printable text.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return is_text(t.name_raw)

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        raw = view.tensor(index).name_raw
        if not raw:
            return Fault(f"tensor {index} has an empty name")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return Fault(
                f"the name of tensor {index} is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}"
            )
        code = f"U+{ord(CONTROL.findall(text)[0]):04X}"
        return Fault(f"the name of tensor {index}, {quote(text)}, holds the control character {code}")


class NameUnique(
    Rule, name="name-unique", status="NAME", field="ofs_name", needs=("name-text",), on_columns=False
):
    """No two tensors have the same name.

    Why: a reader that looks a tensor up by its name would get one of the two, and
    which one would depend on the reader.

    Fix: rename one of them, or remove the copy.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.file.first_with_name(t.name_raw, NameRange.holds) == t.index

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        first = view.file.first_with_name(view.tensor(index).name_raw, NameRange.holds)
        return Fault(f"{view.short_label(index)} has the name of tensor {first}")


class Dtype(Rule, name="dtype", status="TYPE", field="dtype"):
    """The dtype is one of the table.

    Why: the code tells the width of an element; without a known one the payload is
    bits of unknown meaning.

    Fix: use a code of the layout page's table; blocks of another format's layout
    are `foreign`.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.dtype_is_listed

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        return Fault(
            f"{view.short_label(index)} has the dtype 0x{tensor.dtype:04x}, which is not in the table"
        )


class Rank(Rule, name="rank", status="TYPE", field="rank"):
    """The rank is at most 8.

    Why: a descriptor has room for 8 dimensions.

    Fix: merge dimensions until there are 8 or fewer.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.rank <= MAX_RANK

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        return Fault(f"{view.short_label(index)} has rank {tensor.rank}; the greatest is {MAX_RANK}")


class ShapeTail(Rule, name="shape-tail", status="TYPE", field="shape", needs=("rank",)):
    """Entries of the shape from rank on are 0.

    Why: a number there means that rank and shape were not written by the same hand,
    and one of them is wrong.

    Fix: set rank to the number of dimensions and the entries after them to 0.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.shape_tail == 0

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        entry = next(entry for entry in range(tensor.rank, MAX_RANK) if tensor.shape[entry])
        message = (
            f"{view.short_label(index)} has rank {tensor.rank}, but shape[{entry}] is {tensor.shape[entry]}"
        )
        return Fault(message, entry=entry)


class ForeignBlock(
    Rule, name="foreign-block", status="TYPE", field="block_elements", needs=("dtype", "rank", "shape-tail")
):
    """A foreign tensor says how large its blocks are, and holds whole blocks; no other does.

    Why: Kiln reads nothing inside a foreign block, so its size is all that there is
    to know the payload's length by. For every other dtype block_elements,
    block_bytes and foreign_tag are 0.

    Fix: for foreign, set block_elements and block_bytes from the other format's
    definition and pad the shape to whole blocks; otherwise set all three to 0.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        is_foreign, other = t.dtype == FOREIGN, t.dtype != FOREIGN
        none = (t.block_elements | t.block_bytes | t.foreign_tag) == 0
        some = (t.block_elements != 0) & (t.block_bytes != 0)
        return (is_foreign & some & (t.blocks * t.block_elements == t.count)) | (other & none)

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        if tensor.dtype != FOREIGN:
            wrong = next(field for field in FOREIGN_FIELDS if getattr(tensor, field))
            return Fault(f"{view.label(index)} is not foreign, but its {wrong} is {getattr(tensor, wrong)}")
        for field in FOREIGN_FIELDS[:2]:
            if not getattr(tensor, field):
                return Fault(f"{view.label(index)} has {field} 0")
        return Fault(
            f"{view.label(index)} does not fill blocks of {plural(tensor.block_elements, 'element')}",
            f"{tensor.count} mod {tensor.block_elements} = {tensor.count % tensor.block_elements}",
        )


class DataLength(
    Rule,
    name="data-length",
    status="LENGTH",
    field="len_data",
    needs=("dtype", "rank", "shape-tail", "foreign-block"),
):
    """The payload is as long as its shape and dtype say.

    Why: the payload is the array. Too short, and a read ends in another tensor; too
    long, and the shape is not the one that was written.

    Fix: len_data is ceil(count · bits / 8), and for foreign
    count / block_elements · block_bytes.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.len_data == t.expected_bytes

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        expected = tensor.expected_bytes
        if tensor.dtype == FOREIGN:
            working = f"{tensor.count} / {tensor.block_elements} · {tensor.block_bytes} = {expected}"
        else:
            working = f"ceil({tensor.count} · {element_bits(tensor)} / 8) = {expected}"
        return Fault(
            f"{view.label(index)} needs {plural(expected, 'byte')}; len_data is {tensor.len_data}", working
        )


class DataAlign(Rule, name="data-align", status="ALIGN", field="ofs_data"):
    """The payload starts at a multiple of 64.

    Why: then a mapped file can be used where it is, by vector instructions too.

    Fix: pad with zeros before the payload up to the next multiple of 64.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return (t.ofs_data & (ALIGNMENT - 1)) == 0

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        owner = view.short_label(index)
        return Fault(
            f"the payload of {owner} starts at {tensor.ofs_data}, not at a multiple of {ALIGNMENT}",
            f"{tensor.ofs_data} mod {ALIGNMENT} = {tensor.ofs_data % ALIGNMENT}",
        )


class DataRange(Rule, name="data-range", status="LENGTH", field="ofs_data"):
    """The payload lies after the names and before the end of the file.

    Why: one that starts earlier would be the directory itself; one that ends later
    is not all there. The end is len_file, as written.

    Fix: if the file was cut, get it whole; a writer places payloads after
    64 + 128 · num_tensors + len_names.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        begins_after_names = t.ofs_data >= t.file.end_of_names
        room = t.file.len_file - t.ofs_data
        return begins_after_names & (t.ofs_data <= t.file.len_file) & (t.len_data <= room)

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        owner = view.short_label(index)
        head = view.file.end_of_names
        if tensor.ofs_data < head:
            return Fault(f"the payload of {owner} starts at {tensor.ofs_data}; the names end at {head}")
        end = tensor.ofs_data + tensor.len_data
        return Fault(
            f"the payload of {owner} ends at {end}; len_file is {view.file.len_file}",
            f"{tensor.ofs_data} + {tensor.len_data} = {end}",
        )


class DataOverlap(
    Rule, name="data-overlap", status="OVERLAP", field="ofs_data", needs=("data-range",), on_columns=False
):
    """No two payloads share a byte, unless they are one and the same range.

    Why: a write through one name would change the other. Tied weights share one
    whole payload, and that is fine. An empty payload shares nothing.

    Fix: give each tensor a range of its own, or both the very same one.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.index not in t.file.overlapped(DataRange.holds)

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        other = view.file.overlapped(DataRange.holds)[index]
        return Fault(
            f"the payload of {view.short_label(index)}, {_range_text(view, index)}, "
            f"shares bytes with that of {view.short_label(other)}, {_range_text(view, other)}"
        )


def is_text(raw: bytes) -> bool:
    """Whether a name has bytes, is UTF-8 and holds no control character."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return text != "" and (text.isprintable() or CONTROL.search(text) is None)


def _range_text(view: View, index: int) -> str:
    tensor = view.tensor(index)
    return f"{tensor.ofs_data} to {tensor.ofs_data + tensor.len_data - 1}"
