"""Profiles programs with known answers: shares of CPU time, chains of frames, lines (known.py).

    known_answers_test.py [--seconds N] [--rate HZ] INTERPRETER…     see interpreters.py
"""

import argparse
import collections
import json
import math
import pathlib
import sys
import time

import chains
import interpreters
import stacks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # noqa: E402

SHARE_ERROR_MAX = 0.03
COMPLETE_MIN = 0.995
UNNAMED_MAX = 0.001
# Outside of its busy statement, a part reads a clock and makes objects.
CHAIN_MIN = 0.97


def run_program(directory, interpreter, seconds):
    process = interpreter.run(directory, "known.py", seconds)
    printed = process.communicate(timeout=600)[0]
    lib.check(process.returncode == 0, f"{interpreter.name}: exit code {process.returncode}")
    return json.loads(printed)


def profile(directory, reducer, collector, interpreter, options):
    """Runs the program to its end. Returns (what it printed, its stacks)."""
    lib.wait_for("a running collector", lambda: reducer.status()["total"]["captured"] > 0 or not collector.running(), 30)
    lib.check(collector.running(), "the collector ended")
    # Unwind rows of the interpreter are loaded when it is first sampled. short_processes_test.py tests the first samples.
    run_program(directory, interpreter, 0.02)
    answers = run_program(directory, interpreter, options.seconds)

    def count():
        # The modules that the program imports run their code once, and free it at once: often before it can be read.
        found = stacks.Stacks(reducer, f'{{process_pid="{answers["pid"]}"}}', math.ceil(answers["begin_ms"]), lib.now_ms() + 1000)
        return found if found.total >= answers["cpu_ns"] * 0.9 * options.rate / 1e9 else None

    time.sleep(1)
    return answers, lib.wait_for("all samples", count, 30, 0.5)


def check_part(part, found, answers, failures):
    share = part["cpu_ns"] / answers["cpu_ns"]
    count = found.matching(part["chain"])
    seen = count / found.total
    own = {"threads": part["chain"][-1]}.get(part["name"], part["chain"][min(3, len(part["chain"]) - 1)])
    belonging = found.having(own)
    of_part = sum(n for _, n in belonging)
    right = count / of_part if of_part else 0
    print(f"  {part['name']:18} true share {share:.4f}, seen {seen:.4f}; {count} of {of_part} samples have the chain ({right:.4f})",
          flush=True)
    if abs(seen - share) > SHARE_ERROR_MAX:
        failures.append(f"{part['name']}: share {seen:.4f}, true {share:.4f}")
    if right < CHAIN_MIN:
        wrong = collections.Counter()
        for stack, n in belonging:
            if not chains.matches(part["chain"], stack):
                wrong[chains.stack_text(stack)] += n
        examples = "".join(f"\n    {n} × {text}" for text, n in wrong.most_common(3))
        failures.append(f"{part['name']}: only {right:.4f} have the chain {chains.text(part['chain'])}, but{examples}")


def check_whole(found, failures):
    unnamed = sum(n for stack, n in found.counted if any(stacks.is_unnamed(frame) for frame in stack))
    frames = sum(len(stack) * n for stack, n in found.counted)
    nameless = sum(n for stack, n in found.counted for frame in stack if stacks.is_unnamed(frame))
    cut = sum(found.not_complete().values())
    good = 1 - (unnamed + cut) / found.total
    print(f"  {found.total} samples; {good:.5f} are complete and named; endings {found.health['endings']}; "
          f"{nameless} of {frames} frames have no name", flush=True)
    if good < COMPLETE_MIN:
        failures.append(f"only {good:.5f} of the samples have complete stacks with names")
    if nameless > UNNAMED_MAX * frames:
        failures.append(f"{nameless} of {frames} frames have no name")


def check_interpreter(directory, reducer, collector, name, options):
    interpreter = interpreters.find(name, directory)
    try:
        answers, found = profile(directory, reducer, collector, interpreter, options)
    finally:
        interpreter.forget(directory)
    print(f"{name}: Python {answers['version']}", flush=True)
    failures = []
    lib.check(set(answers["missing"]) <= interpreter.missing, f"{name} lacks modules: {answers['missing']}")
    for part in answers["parts"]:
        check_part(part, found, answers, failures)
    check_whole(found, failures)
    return [f"{name} ({answers['version']}): {failure}" for failure in failures]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.5, help="CPU time of each part")
    parser.add_argument("--rate", type=int, default=999)
    parser.add_argument("interpreters", nargs="+")
    options = parser.parse_args()
    failures = []
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=options.rate, args=["--batch-interval", "500ms"])
        programs.append(collector)
        for name in options.interpreters:
            failures += check_interpreter(d, reducer, collector, name, options)
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status())
    for failure in failures:
        print(f"FAILED {failure}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
