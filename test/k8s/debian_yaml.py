"""PyYAML. Debian's package belongs to Debian's Python, which may not be the Python that runs the tests."""

import sys

try:
    import yaml  # noqa: F401
except ImportError:
    sys.path.append("/usr/lib/python3/dist-packages")
    import yaml  # noqa: F401
