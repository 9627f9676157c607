"""Makes an interpreter run its native code: calls, sorting with callbacks, regular expressions, JSON, hashing,
compression, exceptions. Runs until it is killed."""
import functools
import hashlib
import json
import re
import zlib


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def fail(depth):
    if depth == 0:
        raise ValueError("at the bottom")
    try:
        fail(depth - 1)
    finally:
        str(depth)


def work(x):
    rows = [{"key": f"row {(x * i) % 997}", "values": [i, i / 3, None, True]} for i in range(200)]
    text = json.dumps(rows)
    rows = sorted(json.loads(text), key=lambda row: row["key"])
    rows.sort(key=functools.cmp_to_key(lambda a, b: len(a["key"]) - len(b["key"])))
    found = len(re.findall(r"(row (\d+)+).{0,20}?null", text))
    packed = zlib.compress(text.encode(), 6)
    digest = hashlib.blake2b(packed * 20).digest()
    try:
        fail(x % 15)
    except ValueError:
        found += fibonacci(14)
    return digest[0] + found + len(zlib.decompress(packed))


total = 0
while True:
    total += work(total % 1000)
