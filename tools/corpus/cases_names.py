"""Rules name-range, name-text and name-unique."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.layout import File, Tensor

LONGEST = 65535
"""The greatest len_name, in bytes."""


@sound("kiln-v2-names")
def names() -> File:
    """Two tensors whose names are one byte each, the shortest there are; they fill the pool."""
    return File(Tensor("a", "u8", (2,)), Tensor("b", "u8", (2,)))


@sound("kiln-v2-names-unused")
def names_unused() -> File:
    """The pool holds a byte that no name uses."""
    file = File(Tensor("a", "u8", (2,)))
    file.names = b"ax"
    return file.head(len_names=2).honest()


@sound("kiln-v2-names-shared")
def names_shared() -> File:
    """Three names out of four bytes: "b.wt", "wt" and "b" share bytes and differ."""
    file = File(Tensor("b.wt", "u8", (2,)), Tensor("", "u8", (2,)), Tensor("", "u8", (2,)))
    return file.set(1, ofs_name=2, len_name=2).set(2, ofs_name=0, len_name=1)


@sound("kiln-v2-names-case")
def names_case() -> File:
    """The names "w" and "W" are different bytes, so different names."""
    return File(Tensor("w", "u8", (2,)), Tensor("W", "u8", (2,)))


@sound("kiln-v2-names-composed")
def names_composed() -> File:
    """An e with acute as one code point and as two: equal to the eye, different bytes, so different names."""
    return File(Tensor("\u00e9", "u8", (2,)), Tensor("e\u0301", "u8", (2,)))


@sound("kiln-v2-names-scripts")
def names_scripts() -> File:
    """Names in Greek, Cyrillic, Arabic, Hebrew, Devanagari, Thai, Han, Hangul, Kana and emoji."""
    texts = ("βάρος", "вес", "وزن", "משקל", "भार", "น้ำหนัก", "权重", "가중치", "おもみ", "🏋️")
    return File(*[Tensor(text, "u8", (1,)) for text in texts])


@sound("kiln-v2-name-65535")
def name_longest() -> File:
    """A name of 65535 bytes, the longest that len_name can say."""
    return File(Tensor("n" * LONGEST, "u8", (2,)))


@sound("kiln-v2-name-65535-twice")
def name_longest_twice() -> File:
    """Two names of 65535 bytes that share all but one byte and differ in the last."""
    file = File(Tensor("n" * LONGEST + "m", "u8", (2,)), Tensor("", "u8", (2,)))
    return file.set(0, len_name=LONGEST).set(1, ofs_name=1, len_name=LONGEST)


# name-range


@broken("kiln-v2-name-range", "NAME", names, Fault("name-range", 1, name=None))
def name_range(file: File) -> None:
    """The last name ends one byte behind the pool, so it can't be read."""
    file.set(1, len_name=2)


@broken("kiln-v2-name-range-starts", "NAME", names, Fault("name-range", 1, name=None))
def name_range_starts(file: File) -> None:
    """The last name starts where the pool ends."""
    file.set(1, ofs_name=2)


@broken("kiln-v2-name-range-empty", "NAME", names, Fault("name-range", 1, name=None))
def name_range_empty(file: File) -> None:
    """An empty name one byte behind the pool's end: out of range, and so not judged as a text."""
    file.set(1, ofs_name=3, len_name=0)


@broken("kiln-v2-name-range-wrap", "NAME", names, Fault("name-range", 1, name=None))
def name_range_wrap(file: File) -> None:
    """ofs_name + len_name is 2^32, which modulo 2^32 is 0."""
    file.set(1, ofs_name=2**32 - 1)


@broken("kiln-v2-name-range-65535", "NAME", name_longest, Fault("name-range", 0, name=None))
def name_range_longest(file: File) -> None:
    """A name of 65535 bytes in a pool of 65534."""
    file.head(len_names=LONGEST - 1)


# name-text


@broken("kiln-v2-name-text", "NAME", names, Fault("name-text", 1, name="\n"))
def name_text(file: File) -> None:
    """A name is a line feed, a control character."""
    file.names = b"a\n"


@broken("kiln-v2-name-empty", "NAME", names, Fault("name-text", 1, name=""))
def name_empty(file: File) -> None:
    """A name of no bytes, one less than the shortest."""
    file.set(1, len_name=0)


@broken("kiln-v2-name-empty-at-end", "NAME", names, Fault("name-text", 1, name=""))
def name_empty_at_end(file: File) -> None:
    """An empty name where the pool ends is in range, and empty."""
    file.set(1, ofs_name=2, len_name=0)


@broken(
    "kiln-v2-name-empty-twice", "NAME", names, Fault("name-text", 0, name=""), Fault("name-text", 1, name="")
)
def name_empty_twice(file: File) -> None:
    """Two empty names: each is a finding of its own, and neither is judged for being unique."""
    file.set(0, len_name=0).set(1, len_name=0)


TEXTS = {
    "space": ("a b", "U+0020, the first behind the controls"),
    "tilde": ("a~b", "U+007E, the last before DELETE"),
    "no-break-space": ("a\u00a0b", "U+00A0, the first behind the second block of controls"),
    "separator": ("a\u2028b", "U+2028, which separates lines and is no control character"),
    "byte-order-mark": ("\ufeffab", "U+FEFF, which in a name is a character like any other"),
    "before-surrogates": ("a\ud7ffb", "U+D7FF, the last before the surrogates"),
    "behind-surrogates": ("a\ue000b", "U+E000, the first behind the surrogates"),
    "last": ("a\U0010ffffb", "U+10FFFF, the last code point"),
}
"""Names at the edges of what a name may hold."""

sound_texts = {}
for part, (text, what) in TEXTS.items():

    @sound(f"kiln-v2-name-{part}", text=text, what=what)
    def name_sound(text: str, what: str) -> File:
        """A name may hold {what}."""
        return File(Tensor(text, "u8", (4,)))

    sound_texts[part] = name_sound

CONTROLS = {
    "0000": ("space", "a\0b"),
    "001f": ("space", "a\x1fb"),
    "007f": ("tilde", "a\x7fb"),
    "0080": ("no-break-space", "a\x80b"),
    "009f": ("no-break-space", "a\x9fb"),
}
"""Control characters at the ends of their blocks: the sound twin, the name."""

for code, (part, text) in CONTROLS.items():

    @broken(
        f"kiln-v2-name-control-{code}",
        "NAME",
        sound_texts[part],
        Fault("name-text", 0, name=text),
        code=code.upper(),
        text=text,
    )
    def name_control(file: File, code: str, text: str) -> None:
        """A name holds the control character U+{code}; the finding gives the name as it is."""
        file.names = text.encode()


NOT_UTF8 = {
    "surrogate": ("before-surrogates", b"a\xed\xa0\x80b", "the three bytes of a surrogate, U+D800"),
    "beyond": ("last", b"a\xf4\x90\x80\x80b", "four bytes for U+110000, one more than the last code point"),
    "overlong": ("no-break-space", b"a\xc1\xa1b", "two bytes for a letter that takes one"),
    "cut": ("space", b"ab\xe2", "the first byte of three at its end"),
    "continuation": ("space", b"a\x80b", "a byte that continues nothing"),
    "byte-ff": ("space", b"a\xffb", "the byte 0xFF"),
}
"""Names that are not UTF-8: the sound twin, the bytes, what they are."""

for part, (twin, raw, what) in NOT_UTF8.items():

    @broken(
        f"kiln-v2-name-{part}",
        "NAME",
        sound_texts[twin],
        Fault("name-text", 0, name=None),
        raw=raw,
        what=what,
    )
    def name_not_utf8(file: File, raw: bytes, what: str) -> None:
        """A name is not UTF-8: it has {what}; the finding can't give it."""
        file.names = raw


@broken("kiln-v2-name-half", "NAME", sound_texts["no-break-space"], Fault("name-text", 0, name=None))
def name_half(file: File) -> None:
    """len_name ends within a character, although the pool holds all of it."""
    file.set(0, len_name=2)


# name-unique


@broken("kiln-v2-name-unique", "NAME", names, Fault("name-unique", 1, name="a"))
def name_unique(file: File) -> None:
    """Two tensors have the same name; the finding is on the later one."""
    file.names = b"aa"


@broken("kiln-v2-name-unique-range", "NAME", names, Fault("name-unique", 1, name="a"))
def name_unique_range(file: File) -> None:
    """Two tensors take their name from the same byte of the pool."""
    file.set(1, ofs_name=0)


@sound("kiln-v2-names-four")
def names_four() -> File:
    """Four tensors, four names."""
    return File(*[Tensor(name, "u8", (1,)) for name in "abcd"])


@broken(
    "kiln-v2-name-unique-thrice",
    "NAME",
    names_four,
    Fault("name-unique", 2, name="a"),
    Fault("name-unique", 3, name="a"),
)
def name_unique_thrice(file: File) -> None:
    """Tensors 0, 2 and 3 have the same name: a finding on each but the first."""
    file.names = b"abaa"
