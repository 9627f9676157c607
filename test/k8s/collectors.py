"""k8s-collector as a process: one prints the entities that it would send, one sends them to a reducer."""

import json
import os
import pathlib
import signal
import subprocess
import threading

BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])


class Collector:
    def __init__(self, *arguments, log, stdout=None):
        self.log_path = log
        with open(log, "ab") as stderr:
            self.process = subprocess.Popen([BIN / "k8s-collector", *map(str, arguments)], stdout=stdout, stderr=stderr, text=True)

    def log(self):
        return self.log_path.read_text()

    def stop(self):
        self.process.terminate()
        return self.process.wait(10)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)


class PrintingCollector(Collector):
    """`entities` is the last state of each entity."""

    def __init__(self, *arguments, log):
        super().__init__("--print-entities", *arguments, log=log, stdout=subprocess.PIPE)
        self.entities, self.rollouts, self.complete = {}, [], False
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            entity = json.loads(line)
            if "complete" in entity:
                self.complete = True
                continue
            self.entities[entity["kind"], entity["id"]] = entity
            if entity["kind"] == "rollout" and not entity.get("gone"):
                self.rollouts.append(entity)

    def stop(self):
        code = super().stop()
        self.reader.join()
        return code
