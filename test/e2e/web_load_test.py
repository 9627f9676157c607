"""Tests the reducer's HTTP server with clients that send half a request, read slowly, or ask too much or nonsense.

Needs only a reducer and the made-up nodes of test/fleet, which fill it. It fails on reducers whose HTTP connections
need a thread each, and on reducers that an absurd question keeps busy.
"""

import contextlib
import gzip
import http.client
import resource
import socket
import statistics
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "fleet"))
import fleet  # noqa: E402  (in a folder of its own)

HALF_SENT = 300
SLOW_READERS = 32
MANY_CLIENTS = 1_000
SAFETY_NET_S = 120  # each wait takes seconds; this is only to end a test that hangs

# The made-up nodes, and the time before now in which they take samples.
NODES, PARTS, BATCH_SECONDS = 60, 12, 120
HOURS = 2

HONEST = "/api/v1/flamegraph?" + urllib.parse.urlencode({"from": f"-{HOURS}h"})
HONEST_QUESTIONS = 15
# The CPU time of an honest question beside absurd ones is at most twice its usual CPU time, if the machine has nothing
# else to do. The test fails only at ten times that.
COST_RATIO_MAX = 2
SAFETY_FACTOR = 10

ALL_TIMES = {"from": "0", "to": "2199-12-31T00:00:00Z"}
YEAR = {"from": "-365d"}
# Seven regular expressions of 1,000 bytes, the most that fits into a request line.
LONG_REGEXES = "{" + ",".join(f'process_command=~"{"(.*e.*b)*" * 110}{number}"' for number in range(7)) + "}"
SLOW_REGEX = '{process_command=~"(.*.*.*.*.*.*=.*){9}|(.*[a-z]){40}"}'
THREADS = '{thread_name!="none"}'


def question(path, **parameters):
    return f"/api/v1/{path}?" + urllib.parse.urlencode(parameters, safe="(){},.*=!~")


# None is the flame graph, so that its CPU time is the CPU time of the honest question.
ABSURD = [
    question("top", **ALL_TIMES, limit=100_000), question("top", **ALL_TIMES, limit=100_000, frames="address"),
    question("top", **YEAR, query=LONG_REGEXES), question("top", **ALL_TIMES, query=SLOW_REGEX), question("top", **YEAR, query=THREADS),
    question("timeline", **ALL_TIMES, buckets=2_000), question("timeline", **YEAR, buckets=2_000, query=THREADS),
    question("timeline", **YEAR, buckets=1, query=LONG_REGEXES),
    question("series", **ALL_TIMES, limit=1_000), question("series", **YEAR, limit=1_000, query=SLOW_REGEX),
    question("symbols", **ALL_TIMES, limit=100_000), question("symbols", **YEAR, query=THREADS),
    question("stack-health", **ALL_TIMES), question("lines", **ALL_TIMES, function="libmade_f7"),
    question("labels", **ALL_TIMES), question("types", **ALL_TIMES), question("rollouts", **ALL_TIMES, cpu=1, limit=100),
    question("events", **ALL_TIMES), question("events/marks", **ALL_TIMES), question("events/programs", **ALL_TIMES),
]

# Requests that get a clear error, or an empty answer: the status, and a text that the answer must contain.
WRONG = [
    (question("top", **{"from": "now", "to": "-1h"}), 400, "the time range is empty"),
    (question("top", **{"from": "2199-01-01T00:00:00Z", "to": "2199-02-01T00:00:00Z"}), 200, '"count":0'),
    (question("timeline", **{"from": "0", "to": "9223372036854"}), 400, "is not a time in the years 1970 to 2199"),
    (question("timeline", buckets=2 ** 64), 400, "buckets"), (question("series", limit=1_001), 400, "from 1 to 1000"),
    (question("flamegraph", max_nodes=-1), 400, "max_nodes"), (question("top", type="nonsense"), 400, "the existing types are"),
    (question("top", query='{process_pid="1" host_id="2"}'), 400, "at byte 17"),
    (question("top", query='{process_command=~"a(b"}'), 400, "at byte 19: missing )"),
    (question("top", query='{process_command=~"((a{100}){100}){100}"}'), 400, "regular expression"),
    (question("top", query='{process_command=~"%s"}' % ("a" * 1_025)), 400, "longer than 1024"),
    (question("top", query="{" * 7_000), 400, "expected a label name"), (question("top", query="a" * 9_000), 414, ""),
]


def connect(reducer, first_bytes):
    client = socket.socket()
    # A small receive buffer: the reducer cannot pass a whole file to the kernel.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", reducer.http_port))
    client.sendall(first_bytes)
    return client


def request(reducer, path, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(reducer.url + path, headers=headers), timeout=SAFETY_NET_S) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()


def half_sent_requests_and_slow_readers():
    with lib.directory() as d:
        reducer = lib.Reducer(d)
        clients = [connect(reducer, b"GET /healthz HT") for _ in range(HALF_SENT)]
        slow = [connect(reducer, b"GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(SLOW_READERS)]
        for client in slow:
            lib.check(client.recv(1) == b"H", "a slow reader got no answer")
        for path in ("/healthz", "/readyz", "/metrics", "/api/v1/top"):
            status = request(reducer, path)[0]
            lib.check(status == 200, f"{path} answers {status} beside {HALF_SENT} half-sent requests")
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        for client in clients + slow:
            client.close()


class SlowClients:
    """Half-sent requests, and readers of a byte a second. A connection that the reducer closes is opened again."""

    def __init__(self, reducer):
        self.reducer = reducer
        self.stopping = threading.Event()
        # Each with what it sends first, and the bytes that it reads in a second.
        half, whole = b"GET /healthz HT", b"GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
        self.clients = [(half, 4_096, connect(reducer, half)) for _ in range(HALF_SENT)]
        self.clients += [(whole, 1, connect(reducer, whole)) for _ in range(SLOW_READERS)]
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping.wait(1):
            for i, (first_bytes, at_once, client) in enumerate(self.clients):
                with contextlib.suppress(OSError):  # nothing to read yet, or the reducer has ended
                    if client.recv(at_once, socket.MSG_DONTWAIT) == b"":
                        client.close()
                        self.clients[i] = (first_bytes, at_once, connect(self.reducer, first_bytes))

    def stop(self):
        self.stopping.set()
        self.thread.join()
        for *_, client in self.clients:
            client.close()


class Loops:
    """Asks each of the given questions again and again, each on a thread of its own."""

    def __init__(self, reducer, paths):
        self.reducer = reducer
        self.stopping = False
        self.statuses = [[] for _ in paths]  # of each question
        self.failures = []
        self.threads = [threading.Thread(target=self.run, args=pair) for pair in zip(paths, self.statuses)]
        for thread in self.threads:
            thread.start()

    def run(self, path, statuses):
        while not self.stopping:
            try:
                statuses.append(request(self.reducer, path)[0])
            except (OSError, http.client.HTTPException) as e:
                if not self.stopping:
                    self.failures.append(f"{path[:80]}: {e}")
                return

    def check(self, allowed):
        lib.check(not self.failures, f"questions without an answer: {self.failures[:3]}")
        others = {status for statuses in self.statuses for status in statuses} - set(allowed)
        lib.check(not others, f"questions were answered with {others}")

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


@contextlib.contextmanager
def filled_reducer():
    """A reducer with samples of many nodes. It is killed at the end if it still runs."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        begin = time.time_ns() - HOURS * 3_600 * 1_000_000_000
        with fleet.Nodes(reducer, "--honest", NODES, "--begin", begin, "--batch-seconds", BATCH_SECONDS) as nodes:
            for _ in range(PARTS):
                totals = nodes.part()
        stored = reducer.status()["total"]["stored"]
        lib.check(stored == NODES * totals["samples_per_node"], f"the reducer has {stored} samples of {NODES} nodes, each {totals}")
        yield reducer


def metric(reducer, name, **labels):
    """Returns one value of /metrics."""
    row = name + ("{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "} " if labels else " ")
    for line in request(reducer, "/metrics")[2].decode().splitlines():
        if line.startswith(row):
            return float(line[len(row):])
    raise lib.Failure(f"/metrics has no {row}")


def cpu_ms_of_honest_question(reducer):
    """Asks it, again if the reducer is busy. Returns the CPU time that the reducer took for the answer."""
    before = metric(reducer, "tributary_query_cpu_seconds_total", api="flamegraph")
    deadline = time.monotonic() + SAFETY_NET_S
    while (status := request(reducer, HONEST)[0]) == 503 and time.monotonic() < deadline:
        time.sleep(0.1)
    lib.check(status == 200, f"an honest question is answered with {status}")
    return 1_000 * (metric(reducer, "tributary_query_cpu_seconds_total", api="flamegraph") - before)


def cpu_ms_of_honest_questions(reducer):
    return statistics.median(cpu_ms_of_honest_question(reducer) for _ in range(HONEST_QUESTIONS))


def absurd_questions_beside_honest_ones():
    with filled_reducer() as reducer:
        for path in ABSURD:
            status, _, body = request(reducer, path)
            lib.check(status == 200, f"{path[:80]} answers {status}: {body[:200]}")
        usual_ms = cpu_ms_of_honest_questions(reducer)
        slow, loops = SlowClients(reducer), Loops(reducer, ABSURD)
        try:
            lib.wait_for("an answer to each absurd question", lambda: all(loops.statuses), SAFETY_NET_S)
            beside_ms = cpu_ms_of_honest_questions(reducer)
            for path in ("/healthz", "/readyz", "/metrics", "/app.js", "/api/v1/whoami", "/api/v1/status"):
                status = request(reducer, path)[0]
                lib.check(status == 200, f"{path} answers {status} beside absurd questions")
            # 504: a slow machine, where a question takes over 30 s beside the others.
            loops.check(allowed=(200, 503, 504))
            lib.check(all(200 in statuses for statuses in loops.statuses), "a question was never answered")
            loops.stopping = True
            lib.check(reducer.stop() == 0, "the reducer's exit code")
        finally:
            slow.stop()
            if reducer.running():
                reducer.kill()
            loops.stop()
        asked = sum(map(len, loops.statuses))
        print(f"an honest question takes {usual_ms:.1f} ms of CPU time, and {beside_ms:.1f} ms beside {asked} absurd questions: "
              f"{beside_ms / usual_ms:.2f} times as much, of at most {COST_RATIO_MAX}")
        lib.check(beside_ms <= SAFETY_FACTOR * COST_RATIO_MAX * usual_ms,
                  f"an honest question takes {beside_ms:.1f} ms of CPU time beside absurd ones, and usually {usual_ms:.1f} ms")


def wrong_questions_beside_honest_ones():
    with filled_reducer() as reducer:
        honest = request(reducer, question("top", **YEAR))
        lib.check(honest[0] == 200, f"top answers {honest[0]}")
        for path, expected, text in WRONG:
            status, _, body = request(reducer, path)
            lib.check(status == expected and text.encode() in body, f"{path[:80]} answers {status}: {body[:300]}")
        loops = Loops(reducer, [path for path, _, _ in WRONG])
        try:
            lib.wait_for("an answer to each wrong question", lambda: all(loops.statuses), SAFETY_NET_S)
            for _ in range(HONEST_QUESTIONS):
                cpu_ms_of_honest_question(reducer)
            lib.check(request(reducer, question("top", **YEAR))[2] == honest[2], "top has another answer beside wrong questions")
        finally:
            loops.stop()
        loops.check(allowed=(200, 400, 414, 503))
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def read_all(client):
    pieces = []
    while piece := client.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


def answers_of_many(reducer, path, count):
    """Opens `count` connections, sends the same request on each, and returns the heads of the answers."""
    clients = [socket.create_connection(("127.0.0.1", reducer.http_port), timeout=SAFETY_NET_S) for _ in range(count)]
    for client in clients:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    heads = []
    for client in clients:
        with client:
            heads.append(read_all(client).split(b"\r\n\r\n")[0])
    return heads


def a_thousand_clients_at_once():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * MANY_CLIENTS)), hard))
    with filled_reducer() as reducer:
        path = question("top", **YEAR, limit=10)
        lib.check(request(reducer, path)[0] == 200, "the question")
        requests = ("tributary_query_requests_total", {"api": "top"})
        refusals = [("tributary_query_refusals_total", {"reason": "busy"}), ("tributary_web_refusals_total", {"reason": "busy"})]
        counters = [requests, *refusals]
        before = [metric(reducer, name, **labels) for name, labels in counters]
        heads = answers_of_many(reducer, path, MANY_CLIENTS)
        answered, *refused = [metric(reducer, name, **labels) - was for (name, labels), was in zip(counters, before)]
        good = sum(head.startswith(b"HTTP/1.1 200 ") for head in heads)
        busy = sum(head.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in head for head in heads)
        print(f"of {MANY_CLIENTS} clients at once, {good} got an answer, and {busy} were asked to try again")
        lib.check(good + busy == MANY_CLIENTS, f"{good} clients got 200, {busy} got 503, of {MANY_CLIENTS}; {set(heads)}")
        lib.check(good > 0, "no client got an answer")
        lib.check(answered == good, f"the reducer counts {answered} answers, the clients {good}")
        lib.check(sum(refused) == busy, f"the reducer counts {refused} refusals, the clients {busy}")
        lib.check(request(reducer, path)[0] == 200, "the reducer does not answer after many clients")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def compression_and_tags():
    with lib.directory() as d:
        reducer = lib.Reducer(d)
        try:
            status, headers, plain = request(reducer, "/app.js")
            lib.check(status == 200 and headers["ETag"], f"app.js has no ETag: {status} {headers}")
            lib.check(request(reducer, "/app.js", If_None_Match=headers["ETag"])[0] == 304, "the same ETag is not answered with 304")
            _, headers, packed = request(reducer, "/app.js", Accept_Encoding="gzip")
            lib.check(headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain, "app.js is not compressed")
            _, headers, packed = request(reducer, "/metrics", Accept_Encoding="gzip")
            lib.check(headers["Content-Encoding"] == "gzip" and b"tributary_" in gzip.decompress(packed), "/metrics is not compressed")
        finally:
            reducer.stop()


if __name__ == "__main__":
    lib.main(half_sent_requests_and_slow_readers, absurd_questions_beside_honest_ones, wrong_questions_beside_honest_ones,
             a_thousand_clients_at_once, compression_and_tags)
