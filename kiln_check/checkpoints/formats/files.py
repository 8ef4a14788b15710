"""Files of a checkpoint as sources of bytes."""

from __future__ import annotations

import errno

from kiln_check.source import Source, open_source


def open_file(path: str) -> Source:
    """Open a file of a checkpoint.

    Raises OSError, which names the file, when it can't be opened or is not a regular
    file: offsets say where payloads lie, so a pipe won't do.
    """
    try:
        return open_source(path)
    except OSError as error:
        if error.filename is not None:
            raise
        reason, _, _ = str(error).partition(";")
        raise OSError(error.errno or errno.EINVAL, reason, path) from error
