# Run by python_live_test.cc with any Python from 3.6 on. Prints the stack of the main thread and many code objects, as
# Python itself describes them, and then waits in a known place until its input ends.
import dis
import sys
import threading


def utf8(text, bytes_max):
    out = b""
    for c in text:
        n = ord(c)
        if n < 0x20 or 0x7f <= n < 0xa0 or 0xd800 <= n <= 0xdfff:
            c = "\ufffd"
        if len(out) + len(c.encode()) > bytes_max:
            break
        out += c.encode()
    return out.hex() or "-"


def lines(code):
    if hasattr(code, "co_lines"):
        return [(start, end, line or 0) for start, end, line in code.co_lines()]
    starts = list(dis.findlinestarts(code)) + [(len(code.co_code), 0)]
    return [(a[0], b[0], a[1]) for a, b in zip(starts, starts[1:])]


def describe(code):
    name = getattr(code, "co_qualname", code.co_name)
    runs = ",".join("%d:%d:%d" % run for run in lines(code) if run[0] < run[1])
    print("code", "%x" % id(code), code.co_firstlineno, utf8(name, 512), utf8(code.co_filename, 1024), runs or "-")


def nested(code, found):
    if id(code) in found:
        return
    found[id(code)] = code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            nested(constant, found)


def code_objects():
    import argparse, ast, asyncio, collections, configparser, csv, email.message, http.client, inspect, json, logging
    import pickle, random, socket, tarfile, typing, unittest, urllib.request, zipfile
    found = {}
    for module in list(sys.modules.values()):
        for value in list(vars(module).values()):
            for member in [value] + (list(vars(value).values()) if isinstance(value, type) else []):
                member = getattr(member, "__func__", member)
                code = getattr(member, "__code__", None)
                if isinstance(code, type(nested.__code__)):
                    nested(code, found)
    made = {"__name__": "made"}
    strange = ["gr\u00f6\u00dfe", "\u0436\u0434\u0430\u0442\u044c", "\u4f60\u597d", "\U00020000\U00020001", "f" * 700,
               "\u4f60" * 300]
    for name in strange:
        exec(compile("def %s():\n  pass\n" % name, "/d\u00fcr/%s.py" % name[:40], "exec"), made)
        nested(made[name].__code__, found)
    for file in ["/a\udc80b.py", "/new\nline.py", "", "/" + "\u0436" * 3000]:
        nested(compile("x = lambda: 1", file, "exec"), found)
    long = "def long(x):\n" + "".join("  x = x + 1; x = [x,\n\n %d]\n" % i for i in range(1500)) + "  return x\n"
    gaps = "\n" * 70000 + "def gap():\n  x = 1\n" + "\n" * 40000 + "  return [x,\n\n x]\n"
    for source in [long, gaps]:
        nested(compile(source, "<made>", "exec"), found)
    for i in range(20):  # the same file, line and size, but other names
        nested(compile("def same_%d():\n  return %d\n" % (i, i), "<same>", "exec"), found)
    return found


def wait():
    frame = sys._getframe()
    while frame is not None:
        # The line that this frame will have while it waits.
        print("frame", "%x" % id(frame.f_code), frame.f_lineno + (2 if frame.f_code is wait.__code__ else 0))
        frame = frame.f_back
    sys.stdout.flush(); sys.stdin.read()


def outer():
    for _ in generator():
        pass


def generator():
    yield sorted([1], key=lambda _: wait())


def main():
    import ctypes
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    found = code_objects()
    for code in found.values():
        describe(code)
    print("state", "%x" % ctypes.pythonapi.PyThreadState_Get(), "%x" % threading.get_ident())
    outer()


main()
