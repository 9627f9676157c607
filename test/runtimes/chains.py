"""Chains: what a stack with language frames must look like. Runs on Python 3.6 and later.

A stack is a list of frames {"kind", "function", "file", "line"}, the outermost frame first. An element of a chain is:
    {"function", "file", "line"}   a frame of the language; "line" may be None
    {"any": True}                  any number of frames
    {"native": NAME}               one frame of native code with this name, before the next frame of the language
    {"either": [CHAIN, …]}         one of these chains
Native frames between the elements are allowed.
"""

import itertools

LANGUAGES = ("python",)
ANY = {"any": True}


def native(name):
    return {"native": name}


def is_language(frame):
    return frame["kind"] in LANGUAGES


def matches(chain, stack):
    """Returns whether the whole stack has the chain: after the chain, it has only native frames."""
    return any(not any(is_language(frame) for frame in stack[end:]) for end in _ends(chain, stack, {0}))


def _ends(chain, stack, starts):
    """Returns the positions in the stack after the chain, for all positions at which it may start."""
    for element in chain:
        starts = _ends_of(element, stack, starts)
        if not starts:
            break
    return starts


def _ends_of(element, stack, starts):
    if "either" in element:
        return set().union(*(_ends(chain, stack, starts) for chain in element["either"]))
    if "any" in element:
        return set(range(min(starts), len(stack) + 1))
    found = set()
    for start in starts:
        for i in range(start, len(stack)):
            frame = stack[i]
            if "native" in element:
                if is_language(frame):
                    break
                if frame["function"] == element["native"]:
                    found.add(i + 1)
            elif is_language(frame):
                if _is(element, frame):
                    found.add(i + 1)
                break
    return found


def _is(element, frame):
    return (frame["function"] == element["function"] and frame["file"] == element["file"]
            and (element["line"] is None or frame["line"] == element["line"]))


def without_native(chain):
    """Returns the chain without its elements of native code."""
    out = []
    for element in chain:
        if "either" in element:
            out.append({"either": [without_native(each) for each in element["either"]]})
        elif "native" not in element:
            out.append(element)
    return out


def _joined(words):
    """Joins the words. Repetitions of a word become a number."""
    groups = [(word, len(list(group))) for word, group in itertools.groupby(words)]
    return " → ".join(word if count == 1 else "%s × %d" % (word, count) for word, count in groups)


def text(chain):
    """Returns the chain as short text, for messages."""
    words = []
    for element in chain:
        if "either" in element:
            words.append("(" + " | ".join(text(each) for each in element["either"][:2]) + ")")
        elif "any" in element:
            words.append("…")
        elif "native" in element:
            words.append("[" + element["native"] + "]")
        else:
            words.append("%s:%s" % (element["function"], element["line"]))
    return _joined(words)


def stack_text(stack):
    return _joined("%s:%s" % (f["function"], f["line"]) if is_language(f) else "[%s]" % f["function"] for f in stack)


def stack_of(frame):
    """Returns the stack of a frame object of this interpreter."""
    stack = []
    while frame is not None:
        code = frame.f_code
        stack.append({"kind": "python", "function": getattr(code, "co_qualname", code.co_name), "file": code.co_filename,
                      "line": frame.f_lineno})
        frame = frame.f_back
    return stack[::-1]
