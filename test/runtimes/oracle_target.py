"""Runs the parts of python_parts.py and other code in short turns, until it is killed: oracle_target.py FILE.

At SIGUSR1, faulthandler appends the stack of the thread that got the signal to FILE, before that thread goes on.
"""

import faulthandler
import random
import signal
import sys

import python_parts as parts


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Tree:
    def __init__(self, depth):
        self.children = [Tree(depth - 1) for _ in range(2)] if depth else []

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def __len__(self):
        return sum(1 for _ in self.walk())


def texts():
    out = []
    for i in range(300):
        text = "row {} of {!r}".format(i, (i, str(i) * 3))
        out.append(text.upper().split(" "))
    out.sort(key=lambda words: words[1])
    return {" ".join(words): len(words) for words in out}


def run_all():
    for name, function, _ in parts.PARTS:
        try:
            function()
        except ImportError:
            parts.PARTS.remove((name, function, _))
            return
        fibonacci(random.randrange(5, 16))
        len(Tree(random.randrange(2, 7)))
        texts()


def main():
    output = open(sys.argv[1], "ab", buffering=0)
    faulthandler.register(signal.SIGUSR1, file=output, all_threads=False)
    parts.SECONDS = 0.02
    parts.CHUNK = range(2000)
    while True:
        run_all()


main()
