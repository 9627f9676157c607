"""Works like a service: parses, sorts, matches, formats, hashes and compresses. It never ends."""

import collections
import hashlib
import json
import random
import re
import zlib


def records(generator, count):
    for i in range(count):
        yield {"id": i, "name": f"user{generator.randrange(1000)}", "score": generator.random(), "tags": ["a", "b", "c"][: i % 4]}


def group(rows):
    names = collections.defaultdict(list)
    for row in rows:
        names[row["name"]].append(row["score"])
    return {name: sum(scores) / len(scores) for name, scores in names.items()}


def tree_sum(depth):
    return 1 if depth == 0 else tree_sum(depth - 1) + tree_sum(depth - 1)


def main():
    generator = random.Random(1)
    pattern = re.compile(r"user(\d+)\D+(0\.\d+)")
    while True:
        text = json.dumps(list(records(generator, 500)))
        rows = json.loads(text)
        means = group(rows)
        ranking = sorted(means.items(), key=lambda item: -item[1])
        found = sum(int(m.group(1)) for m in pattern.finditer(text))
        packed = zlib.compress(text.encode())
        digest = hashlib.sha256(packed).hexdigest()
        "%s %d %s %d" % (ranking[0], found, digest, tree_sum(10))


main()
