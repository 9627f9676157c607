"""Compares a stack of the collector with gdb's stack of the same stop. Sorts the differences into a fixed list."""

import dataclasses
import enum
import pathlib
import re

RECORDS = pathlib.Path(__file__).resolve().parent.parent.parent / "bpf/include/records.h"
# The limit of the collector's stack walk.
FRAMES_MAX = int(re.search(r"define TRIB_USER_FRAMES_MAX (\d+)", RECORDS.read_text())[1])


class Verdict(enum.Enum):
    IDENTICAL = "identical"
    # No unwind information describes how to leave the last common frame. gdb reads instructions and guesses. The
    # collector follows frame pointers.
    NO_INFORMATION = "different past code without unwind information"
    # The collector's stack is the inner part of gdb's stack, and is marked as incomplete.
    CUT = "cut short, and marked so"
    # gdb's stack is the inner part of the collector's stack.
    GDB_STOPS = "gdb stops earlier"
    # The process did not stop at the sampled instruction, so the stacks are not compared.
    FAILED_STOP = "failed stop"
    # These two verdicts must not occur.
    WRONG_COMPLETE = "called complete, and gdb shows more frames"
    UNEXPLAINED = "unexplained"


@dataclasses.dataclass
class GdbFrame:
    place: tuple  # (executable id, ELF address) of the frame's program counter
    path: str
    lookup: int   # an address in the frame's code; a return address may be the first one after the function or the file
    name: str


def place(frames, code):
    """Returns gdb's frames before the first frame that lies in no executable mapping. The leaf is always included.

    A frame outside of executable mappings is not code. gdb found a value beyond the outermost frame: a zero or a piece
    of the initial stack."""
    out = []
    exact = True
    for frame in frames:
        lookup = frame["pc"] - (0 if exact else 1)
        if out and code.mapping_of(lookup) is None:
            break
        id_, address, path = code.locate(lookup)
        out.append(GdbFrame((id_, address + frame["pc"] - lookup), path, lookup, frame["name"]))
        exact = frame["signal"]  # an address that a signal interrupted is not a return address
    return out


def common_length(ours, theirs):
    n = 0
    while n < min(len(ours), len(theirs)) and ours[n][:2] == theirs[n].place:
        n += 1
    return n


def compare(ours, ending, theirs, code):
    """Returns the Verdict. `ours`: (executable id, ELF address, path). `theirs`: GdbFrame. Both innermost first."""
    if not ours or ours[0][:2] != theirs[0].place:
        return Verdict.FAILED_STOP
    n = common_length(ours, theirs)
    if n == len(ours) == len(theirs) or n == len(ours) == FRAMES_MAX and ending == "truncated_depth":
        return Verdict.IDENTICAL
    if len(theirs) > len(ours) and ending == "complete":
        return Verdict.WRONG_COMPLETE
    if not code.has_unwind_information(theirs[n - 1].lookup):
        return Verdict.NO_INFORMATION
    if n == len(ours):
        return Verdict.CUT
    return Verdict.GDB_STOPS if n == len(theirs) else Verdict.UNEXPLAINED
