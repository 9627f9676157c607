"""The parts of a Python program whose profile is known: known.py runs them. They run on CPython 3.6 to 3.14.

Each part is busy for SECONDS of CPU time, and almost all of it in one statement. Its chain has the frames from the
part's function to this statement (chains.py). The lines are found by marks in this file: `# @mark`.
"""

import asyncio
import functools
import hashlib
import json
import re
import sys
import time

from chains import ANY, native

try:
    import _hashlib
    import ctypes
except ImportError:
    _hashlib = ctypes = None

FILE = (lambda: 0).__code__.co_filename
QUALIFIED = sys.version_info >= (3, 11)  # code objects know their qualified names
INLINED_COMPREHENSIONS = sys.version_info >= (3, 12)
CHUNK = range(100000)  # about 3 ms: much longer than a call of clock()
DEPTH = 60
ROUNDS = 8  # functions that are made and thrown away

with open(FILE, encoding="utf-8") as source:
    MARKS = {mark: number for number, text in enumerate(source, 1) for mark in re.findall(r"# @(\S+)$", text.rstrip())}

PARTS = []  # (name, function, chain)
clock_id = time.CLOCK_THREAD_CPUTIME_ID
SECONDS = 1.0


def clock():
    return time.clock_gettime(clock_id)


def python(function, mark=None, file=FILE, line=None):
    name = function if QUALIFIED else function.rsplit(".", 1)[-1]
    return {"function": name, "file": file, "line": MARKS[mark] if mark else line}


def need(module):
    if module is None:
        raise ImportError("a module is missing")


def part(*chain):
    def add(function):
        # The decorated function calls the rest of its chain at the line with the mark @name-part.
        own = python(function.__qualname__, function.__name__.strip("_") + "-part")
        PARTS.append((function.__name__, function, [own, *chain]))
        return function

    return add


# Functions that call each other.


def recurse(depth):
    if depth > 1:
        return recurse(depth - 1)  # @recursion-call
    end = clock() + SECONDS
    while clock() < end:
        for _ in CHUNK: pass  # @recursion-busy


@part(*[python("recurse", "recursion-call")] * (DEPTH - 1), python("recurse", "recursion-busy"))
def recursion():
    recurse(DEPTH)  # @recursion-part


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)  # @decorators-wrapper

    return wrapper


@decorate
@decorate
def decorated(end):
    while clock() < end:
        for _ in CHUNK: pass  # @decorators-busy


@part(*[python("decorate.<locals>.wrapper", "decorators-wrapper")] * 2, python("decorated", "decorators-busy"))
def decorators():
    decorated(clock() + SECONDS)  # @decorators-part


class Outer:
    class Inner:
        def __init__(self, chunk):
            for _ in chunk: pass  # @instances-busy

        @property
        def value(self):
            for _ in CHUNK: pass  # @attributes-busy
            return 1

        def __getattr__(self, name):
            return self.value  # @attributes-getattr

        @classmethod
        def method(cls, end):
            while clock() < end:
                for _ in CHUNK: pass  # @methods-busy

    @staticmethod
    def static(end):
        return Outer.Inner.method(end)  # @methods-static

    def __call__(self, end):
        return self.static(end)  # @methods-call


@part(python("Outer.__call__", "methods-call"), python("Outer.static", "methods-static"), python("Outer.Inner.method", "methods-busy"))
def methods():
    Outer()(clock() + SECONDS)  # @methods-part


# From 3.12 on, the interpreter enters __init__ without a call of C after a few instances.
@part(python("Outer.Inner.__init__", "instances-busy"))
def instances():
    end = clock() + SECONDS
    while clock() < end:
        Outer.Inner(CHUNK)  # @instances-part


@part(python("Outer.Inner.__getattr__", "attributes-getattr"), python("Outer.Inner.value", "attributes-busy"))
def attributes():
    inner = Outer.Inner(())
    end = clock() + SECONDS
    while clock() < end:
        inner.missing  # @attributes-part


@part(python("lambdas.<locals>.<lambda>", "lambdas-outer"), python("lambdas.<locals>.<lambda>", "lambdas-busy"))
def lambdas():
    inner = lambda chunk: all(chunk)  # @lambdas-busy
    outer = lambda chunk: inner(chunk)  # @lambdas-outer
    ones = (1,) * 1000000
    end = clock() + SECONDS
    while clock() < end:
        outer(ones)  # @lambdas-part


# Exceptions.


def throw(depth):
    if depth == 0:
        raise ValueError("known")
    throw(depth - 1)


def handle(end):
    try:
        throw(5)
    except ValueError:
        while clock() < end:
            for _ in CHUNK: pass  # @exceptions-except
    finally:
        end += SECONDS / 2
        while clock() < end:
            for _ in CHUNK: pass  # @exceptions-finally


@part({"either": [[python("handle", "exceptions-except")], [python("handle", "exceptions-finally")]]})
def exceptions():
    handle(clock() + SECONDS / 2)  # @exceptions-part


# Generators and coroutines.


def numbers(end):
    while clock() < end:
        for _ in CHUNK: pass  # @generators-busy
        yield 1


def delegating(end):
    yield from numbers(end)  # @generators-delegate


@part(python("generators.<locals>.<genexpr>", "generators-expression"), python("delegating", "generators-delegate"),
      python("numbers", "generators-busy"))
def generators():
    expression = (value for value in delegating(clock() + SECONDS))  # @generators-expression
    for _ in expression: pass  # @generators-part


class Awaitable:
    def __await__(self):
        end = clock() + SECONDS
        while clock() < end:
            for _ in CHUNK: pass  # @coroutines-busy
            yield


async def coroutine_inner():
    await Awaitable()  # @coroutines-inner


async def coroutine_outer():
    await coroutine_inner()  # @coroutines-outer


@part(ANY, python("coroutine_outer", "coroutines-outer"), python("coroutine_inner", "coroutines-inner"),
      python("Awaitable.__await__", "coroutines-busy"))
def coroutines():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(coroutine_outer())  # @coroutines-part
    loop.close()


async def ticks(end):
    while clock() < end:
        for _ in CHUNK: pass  # @async_generators-busy
        yield 1


async def consume(end):
    async for _ in ticks(end): pass  # @async_generators-consume


@part(ANY, python("consume", "async_generators-consume"), python("ticks", "async_generators-busy"))
def async_generators():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(consume(clock() + SECONDS))  # @async_generators-part
    loop.close()


# Comprehensions. Before 3.12 each has a frame.


def comprehended(_):
    for _ in CHUNK: pass  # @comprehensions-busy


def comprehension(name):
    return [] if INLINED_COMPREHENSIONS else [python("comprehensions.<locals>." + name, "comprehensions-part")]


@part({"either": [comprehension("<listcomp>") + [python("comprehended", "comprehensions-busy")],
                  comprehension("<dictcomp>") + [python("comprehended", "comprehensions-busy")]]})
def comprehensions():
    end = clock() + SECONDS
    while clock() < end:
        [comprehended(i) for i in range(9)], {i: comprehended(i) for i in range(9)}  # @comprehensions-part


# Native code that calls Python, and native code without the interpreter's lock.


def slow_key(value):
    for _ in CHUNK: pass  # @sorted_by_key-busy
    return -value


@part(python("slow_key", "sorted_by_key-busy"))
def sorted_by_key():
    end = clock() + SECONDS
    while clock() < end:
        sorted(range(20), key=slow_key)  # @sorted_by_key-part


def compare(left, right):
    for _ in CHUNK: pass  # @callbacks-busy
    return left[0] - right[0]


# Some C libraries leave no frame of qsort: its last action is a jump to qsort_r.
@part({"either": [[native("qsort")], [native("qsort_r")]]}, python("compare", "callbacks-busy"))
def callbacks():
    need(ctypes)
    libc = ctypes.CDLL(None)
    pointer = ctypes.POINTER(ctypes.c_int)
    function = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)(compare)
    end = clock() + SECONDS
    while clock() < end:
        values = (ctypes.c_int * 20)(*range(20, 0, -1))
        libc.qsort(values, 20, ctypes.sizeof(ctypes.c_int), function)  # @callbacks-part


def hook(pairs):
    for _ in CHUNK: pass  # @parsing-busy
    return len(pairs)


@part(ANY, python("hook", "parsing-busy"))
def parsing():
    text = json.dumps([{"a": i} for i in range(20)])
    end = clock() + SECONDS
    while clock() < end:
        json.loads(text, object_hook=hook)  # @parsing-part


def replace(match):
    for _ in CHUNK: pass  # @substitutions-busy
    return match.group(0)


@part(ANY, python("replace", "substitutions-busy"))
def substitutions():
    end = clock() + SECONDS
    while clock() < end:
        re.sub("[a-z]", replace, "abcdefghijklmnopqrstuvwxyz")  # @substitutions-part


@part()
def matching():
    search = re.compile("(a+)+$").search
    end = clock() + SECONDS
    while clock() < end:
        search("aaaaaaaaaaaaaaab")  # @matching-part


@part()
def without_the_lock():
    data = b"\0" * 1000000
    end = clock() + SECONDS
    while clock() < end:
        hashlib.sha256(data)  # @without_the_lock-part


@part()
def key_derivation():
    need(_hashlib)
    end = clock() + SECONDS
    while clock() < end:
        _hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 5000)  # @key_derivation-part


# Functions that are made at run time. They have the same file and the same line, and soon the same address.

GENERATED = "/made/gemächt-生成.py"


def make(text, name):
    space = {"clock": clock, "CHUNK": CHUNK}
    exec(compile(text, GENERATED, "exec"), space)
    return space[name]


CALLER = "def caller_%d(function):\n    function()\n"
CALLED = "def called_%d(end):\n    while clock() < end:\n        for _ in CHUNK: pass\n"


@part({"either": [[python("caller_%d" % i, file=GENERATED, line=2), python("generated.<locals>.<lambda>", "generated-part"),
                   python("called_%d" % i, file=GENERATED, line=3)] for i in range(ROUNDS)]})
def generated():
    callers = [make(CALLER % i, "caller_%d" % i) for i in range(ROUNDS)]
    for i, caller in enumerate(callers):
        end = clock() + SECONDS / ROUNDS
        called = make(CALLED % i, "called_%d" % i)
        caller(lambda: called(end))  # @generated-part
        del called


# The next line number of this function is more than 127 lines, and more than 255 bytes of code, away from the one before.
FAR_LINES = 400
FAR = ("def far_away(end):\n    values = [" + "end, " * 300 + "]\n" + "\n" * FAR_LINES
       + "    while clock() < end:\n        for _ in CHUNK: pass\n        values[0] = end\n")


@part(python("far_away", file=GENERATED, line=FAR_LINES + 4))
def far_lines():
    make(FAR, "far_away")(clock() + SECONDS)  # @far_lines-part


# Names that are Latin-1, UCS-2 and UCS-4 strings.


def größe(end):
    return Ω.计算(end)  # @names-latin


class Ω:
    @staticmethod
    def 计算(end):
        return 𐐨𐐩(end)  # @names-ucs2


def 𐐨𐐩(end):
    while clock() < end:
        for _ in CHUNK: pass  # @names-busy


@part(python("größe", "names-latin"), python("Ω.计算", "names-ucs2"), python("𐐨𐐩", "names-busy"))
def names():
    größe(clock() + SECONDS)  # @names-part
