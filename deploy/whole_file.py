"""A file that appears under its name only when everything is in it."""

import contextlib
import os
import pathlib

from failure import Failure


@contextlib.contextmanager
def whole_file(path):
    """Yields a path to write to. The file gets its final name at the end of the block, and is removed on any error."""
    path = pathlib.Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise Failure(f"writing {path} failed: {error.strerror}; "
                      "free disk space there, or choose another place with --out") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
