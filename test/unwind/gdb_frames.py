"""Runs inside gdb, attached to a process. Lets the process run until it gets a SIGSTOP, then reports the frames of the
thread that received the signal.

Reads commands as lines from the descriptor GDB_ASK: "next", "quit". Answers each "next" with a line of JSON on
GDB_ANSWER. gdb stays attached between stops, so it reads symbols only once.
"""

import json
import os

import gdb
from gdb.unwinder import Unwinder, register_unwinder

FRAMES_MAX = 700  # more than the deepest program has
# Types of gdb frames that have no frame on the stack: inlined functions, and tail calls that gdb infers from debug
# information.
NOT_ON_THE_STACK = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)
seen = {}


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class V8Builtins(Unwinder):
    """Unwinds V8's builtins for gdb. They have symbols and no unwind information. By V8's calling convention, each
    builtin has a frame pointer.

    The two instructions that set up the frame, and the return, are handled separately. An interpreter handler that sets
    up no frame runs in the frame of its caller, the interpreter."""

    PROLOGUE = b"\x55\x48\x89\xe5"  # push %rbp; mov %rsp, %rbp
    RETURNS = (b"\xc2", b"\xc3")

    def __init__(self):
        super().__init__("v8-builtins")
        self.known = {}  # by address: whether the address is in a builtin

    def is_builtin(self, pc):
        if pc not in self.known:
            self.known[pc] = gdb.execute(f"info symbol {pc:#x}", to_string=True).startswith("Builtins_")
        return self.known[pc]

    def __call__(self, frame):
        pc, sp, fp = (int(frame.read_register(name)) & (2**64 - 1) for name in ("rip", "rsp", "rbp"))
        if not self.is_builtin(pc):
            return None
        at = fp
        caller_fp = None
        if frame.level() == 0:
            memory = gdb.selected_inferior().read_memory(pc - 1, 5).tobytes()
            if memory[1:] == self.PROLOGUE or memory[1:2] in self.RETURNS:
                at, caller_fp = sp - 8, fp
            elif memory[:4] == self.PROLOGUE:
                at, caller_fp = sp, fp
        word = gdb.lookup_type("unsigned long")
        read = lambda address: gdb.Value(int.from_bytes(gdb.selected_inferior().read_memory(address, 8), "little")).cast(word)
        info = frame.create_unwind_info(FrameId(gdb.Value(at + 16).cast(word), gdb.Value(pc).cast(word)))
        info.add_saved_register("rip", read(at + 8))
        info.add_saved_register("rsp", gdb.Value(at + 16).cast(word))
        info.add_saved_register("rbp", gdb.Value(caller_fp).cast(word) if caller_fp is not None else read(at))
        return info


def on_stop(event):
    seen["stop"] = event.stop_signal if isinstance(event, gdb.SignalEvent) else type(event).__name__


def on_exit(event):
    seen["stop"] = "exited"


def frames():
    """Returns the program counters, innermost first, and the reason why there are no more."""
    out = []
    frame = gdb.newest_frame()
    while frame is not None and len(out) < FRAMES_MAX:
        if frame.type() not in NOT_ON_THE_STACK:
            out.append({"pc": frame.pc(), "name": frame.name(), "signal": frame.type() == gdb.SIGTRAMP_FRAME})
        reason = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
        try:
            frame = frame.older()
        except gdb.error as e:
            return out, str(e)
    return out, "more than are asked for" if frame is not None else reason


def next_stop():
    seen.clear()
    gdb.execute("continue", to_string=True)
    if seen.get("stop") != "SIGSTOP":
        return {"stop": str(seen.get("stop"))}
    list_, reason = frames()
    return {"stop": "SIGSTOP", "tid": gdb.selected_thread().ptid[1], "frames": list_, "reason": reason}


def main():
    for setting in ("pagination off", "confirm off", "backtrace past-main on", "backtrace past-entry on",
                    "debuginfod enabled off", "print thread-events off"):
        gdb.execute(f"set {setting}")
    gdb.execute("handle all nostop noprint pass", to_string=True)
    gdb.execute("handle SIGSTOP stop print nopass", to_string=True)
    gdb.events.stop.connect(on_stop)
    gdb.events.exited.connect(on_exit)
    if os.environ["GDB_V8"] == "1":
        register_unwinder(None, V8Builtins())
    asked = os.fdopen(int(os.environ["GDB_ASK"]))
    answers = os.fdopen(int(os.environ["GDB_ANSWER"]), "w")
    gdb.execute(f"attach {os.environ['GDB_PID']}", to_string=True)
    print("attached", file=answers, flush=True)
    for line in asked:
        if line.strip() != "next":
            break
        try:
            answer = next_stop()
        except gdb.error as e:
            answer = {"stop": f"gdb: {e}"}
        print(json.dumps(answer), file=answers, flush=True)
    gdb.execute("kill", to_string=True)


main()
