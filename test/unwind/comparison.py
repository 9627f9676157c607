"""Compares a stack of the collector with gdb's for the same stop, and sorts differences into a closed list."""

import dataclasses
import enum
import pathlib
import re

RECORDS = pathlib.Path(__file__).resolve().parent.parent.parent / "bpf/include/records.h"
FRAMES_MAX = int(re.search(r"define TRIB_USER_FRAMES_MAX (\d+)", RECORDS.read_text())[1])  # the walk's limit


class Verdict(enum.Enum):
    IDENTICAL = "identical"
    # Nothing tells gdb, nor anybody, how to get out of the last common frame: gdb reads instructions and guesses, the
    # collector follows frame pointers.
    NO_INFORMATION = "different past code without unwind information"
    # The collector's stack is the inner part of gdb's and says itself that it is not whole.
    CUT = "cut short, and marked so"
    # gdb's is the inner part of the collector's.
    GDB_STOPS = "gdb stops earlier"
    # The stop missed the sampled instruction: no comparison.
    FAILED_STOP = "failed stop"
    # These two must not be.
    WRONG_COMPLETE = "called complete, and gdb shows more frames"
    UNEXPLAINED = "unexplained"


@dataclasses.dataclass
class GdbFrame:
    place: tuple  # (executable id, ELF address) of its program counter
    path: str
    lookup: int   # an address within its code: a return address may be the first behind the function, or the file
    name: str


def place(frames, code):
    """gdb's frames up to the first one past the leaf that lies in no executable mapping: that is no code, but what gdb found
    beyond the outermost frame, a zero or a piece of the initial stack."""
    out = []
    exact = True
    for frame in frames:
        lookup = frame["pc"] - (0 if exact else 1)
        if out and code.mapping_of(lookup) is None:
            break
        id_, address, path = code.locate(lookup)
        out.append(GdbFrame((id_, address + frame["pc"] - lookup), path, lookup, frame["name"]))
        exact = frame["signal"]  # what a signal interrupted is no return address
    return out


def common_length(ours, theirs):
    n = 0
    while n < min(len(ours), len(theirs)) and ours[n][:2] == theirs[n].place:
        n += 1
    return n


def compare(ours, ending, theirs, code):
    """`ours`: (executable id, ELF address, path), `theirs`: GdbFrame, both innermost first."""
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
