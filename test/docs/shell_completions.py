"""Reads the completions of the real bash, zsh and fish with our completion scripts, without a person at a terminal."""

import os
import pathlib
import pty
import subprocess
import threading
import time

PATIENCE = 120  # seconds for a shell to answer on a busy machine


def clean_environment(home):
    return {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash(script, lines, folder):
    """Returns bash's completions at the end of each line. It calls the script's function as bash does."""
    program = [f"source {quoted(str(script))}"]
    for line in lines:
        # bash splits words at "=" as well.
        words = line.replace("=", " = ").split(" ")
        function = f"_{words[0].replace('-', '_')}_completion"
        program += [f"COMP_WORDS=({' '.join(map(quoted, words))})", f"COMP_CWORD={len(words) - 1}", f"{function} {words[0]}",
                    "printf '%s\\n' \"${COMPREPLY[@]}\" END"]
    done = subprocess.run(["bash", "--norc", "-c", "\n".join(program)], cwd=folder, env=clean_environment(folder), check=True,
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.stderr:
        raise AssertionError(f"bash says: {done.stderr}")
    return answers(done.stdout, lines)


def fish(script, lines, folder):
    program = [f"source {script}"] + [f"complete -C {quoted(line)}; echo END" for line in lines]
    done = subprocess.run(["fish", "--no-config", "-c", "\n".join(program)], cwd=folder, env=clean_environment(folder), check=True,
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.stderr:
        raise AssertionError(f"fish says: {done.stderr}")
    return answers(done.stdout, lines)


# Writes each match to a file, and END after each line, instead of showing a list.
ZSH_SETUP = r"""
PROMPT=
autoload -Uz compinit
compinit -u -D
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a matches
  builtin compadd -A matches "$@"
  (( ! $#matches )) || print -lr -- $matches >>$MATCHES
  builtin compadd "$@"
}
capture() {
  _main_complete
  print END >>$MATCHES
}
zle -C capture .list-choices capture
bindkey '^I' capture
source $SCRIPT
print END >>$MATCHES
"""


def zsh(script, lines, folder):
    """Types each line and a tab into a zsh with a terminal: zsh completes only on a terminal."""
    matches = pathlib.Path(folder).parent / "zsh-matches"
    matches.write_text("")
    setup = pathlib.Path(folder).parent / "zsh-setup"
    setup.write_text(ZSH_SETUP)
    environment = clean_environment(folder) | {"MATCHES": str(matches), "SCRIPT": str(script)}
    terminal, side = pty.openpty()
    shell = subprocess.Popen(["zsh", "-f", "-i"], cwd=folder, env=environment, stdin=side, stdout=side, stderr=side,
                             start_new_session=True)
    os.close(side)
    threading.Thread(target=drain, args=(terminal,), daemon=True).start()
    try:
        # ^U empties the line. Do not send it before the first line: there the terminal itself might process it.
        typed = [f"source {setup}\n"] + [("\x15" if number > 0 else "") + line + "\t" for number, line in enumerate(lines)]
        for number, text in enumerate(typed, 1):
            os.write(terminal, text.encode())
            wait_for_end(matches, number, text)
    finally:
        shell.kill()
        shell.wait()
    return answers(matches.read_text().split("END\n", 1)[1], lines)


def drain(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # the shell has ended


def wait_for_end(matches, number, text):
    deadline = time.monotonic() + PATIENCE
    while matches.read_text().splitlines().count("END") < number:
        if time.monotonic() > deadline:
            raise AssertionError(f"zsh does not answer: {text!r}")
        time.sleep(0.005)


def answers(output, lines):
    """Returns line → its completions, without descriptions, the text before "=", and the slash of a directory."""
    parts = output.split("END\n")[:-1]
    if len(parts) != len(lines):
        raise AssertionError(f"{len(parts)} answers to {len(lines)} lines: {output}")
    found = {}
    for line, part in zip(lines, parts):
        words = {word.split("\t")[0].replace("\\ ", " ").rstrip("/") for word in part.splitlines()}
        found[line] = {word.rstrip("=").rpartition("=")[2] for word in words if word}
    return found


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
