"""Checks of the documentation pages. Each check takes the source tree and returns one line per error."""

import functools
import pathlib
import re

CODE_FOLDERS = ("base", "intake", "otlp", "kernel-collector", "k8s-collector", "reducer")
# A number in a page or a schema, and the constant that must have the same value. Fields: the page's file, a pattern
# with one group; the constant's file, its name.
LIMITS = [
    ("docs/limits.md", r"names of generated code of one process \| ([\d,]+) MiB", "kernel-collector/runtimes/jit/jit_runtimes.h",
     "kProcessMibMax"),
    ("docs/limits.md", r"names of generated code of all processes \| ([\d,]+) MiB", "kernel-collector/runtimes/jit/jit_runtimes.h",
     "kMibMax"),
    ("schemas/intake/intake.capnp", r"closes @7 .*at most ([\d,]+)", "profile/batch.h", "kClosedSessionsMax"),
    ("schemas/intake/intake.capnp", r"sampleTypes @9 .*at most ([\d,]+)", "profile/sample_types.h", "kSampleTypesMax"),
    ("schemas/intake/intake.capnp", r"typeCounts @10 .*at most ([\d,]+)", "profile/sample_types.h", "kSampleTypesMax"),
    ("schemas/intake/intake.capnp", r"lost @4 .*at most ([\d,]+)", "profile/accounting.h", "kLossReasonsMax"),
    ("schemas/intake/intake.capnp", r"nodeId @5 .*at most ([\d,]+)", "intake/wire/messages.h", "kTextBytesMax"),
    ("schemas/intake/intake.capnp", r"token @17 .*at most ([\d,]+)", "intake/wire/messages.h", "kTokenBytesMax"),
    ("schemas/intake/intake.capnp", r"columns @6 .*at most ([\d,]+)", "intake/codec/batch_encoder.h",
     "kSamplesPerBatchMax"),
    ("schemas/intake/intake.capnp", r"reason @0 .*at most ([\d,]+)", "intake/wire/messages.h", "kReasonBytesMax"),
    ("schemas/intake/intake.capnp", r"ids @0 :List\(ExecutableId\).*at most ([\d,]+)", "intake/wire/messages.h",
     "kNeedSymbolsMax"),
    ("schemas/intake/intake.capnp", r"entities @0 .*at most ([\d,]+)", "profile/metadata.h", "kUpdateEntitiesMax"),
    ("schemas/intake/intake.capnp", r"attributes @4 .*at most ([\d,]+)", "profile/metadata.h", "kEntityAttributesMax"),
    ("docs/intake-protocol.md", r"`closes`[^.]*?at most ([\d,]+)", "profile/batch.h", "kClosedSessionsMax"),
    ("docs/unwinding.md", r"`truncated_depth` \| the stack has more than ([\d,]+)", "bpf/include/records.h",
     "TRIB_USER_FRAMES_MAX"),
    ("docs/store.md", r"at most ([\d,]+) types", "reducer/store/store.h", "kSampleTypesOfShardMax"),
    ("docs/metrics.md", r"room for ([\d,]+) types", "reducer/store/store.h", "kSampleTypesOfShardMax"),
    ("docs/metrics.md", r"and for ([\d,]+) that one machine", "reducer/store/store.h", "kSampleTypesOfMachineMax"),
    ("docs/limits.md", r"in a shard, for exporters \| ([\d,]+)", "reducer/store/loss_record.h", "kLossesMax"),
    ("docs/limits.md", r"retention-events`; (\d+) sample types", "reducer/store/loss_record.h", "kLossTypesMax"),
    ("docs/limits.md", r"signal=metrics`.*? \| ([\d,]+) bytes in protobuf", "otlp/metrics_builder.h", "bytes_max"),
    ("docs/limits.md", r"user stack \| ([\d,]+)", "bpf/include/records.h", "TRIB_USER_FRAMES_MAX"),
    ("docs/limits.md", r"kernel stack \| ([\d,]+)", "bpf/include/records.h", "TRIB_KERNEL_FRAMES_MAX"),
    ("docs/limits.md", r"walk knows \| ([\d,]+)", "bpf/include/unwind.h", "TRIB_PROCESSES_MAX"),
    ("docs/limits.md", r"with ([\d,]+) executable mappings", "bpf/include/unwind.h", "TRIB_MAPPINGS_MAX"),
    ("docs/limits.md", r"mappings of one process \| ([\d,]+)", "bpf/include/unwind.h", "TRIB_PROCESS_MAPPINGS_MAX"),
    ("docs/limits.md", r"processes in memory \| ([\d,]+)", "kernel-collector/processes/process_table.h", "kRunsMax"),
    ("docs/limits.md", r"executable files \| ([\d,]+)", "kernel-collector/processes/code_file.h", "kFilesMax"),
    ("docs/limits.md", r"unwind rules \| ([\d,]+)", "bpf/include/unwind.h", "TRIB_RULES_MAX"),
    ("docs/limits.md", r"kernel code \| ([\d,]+)", "kernel-collector/processes/generated_code_table.h", "kLiveMax"),
    ("docs/limits.md", r"known from Docker \| ([\d,]+)", "kernel-collector/metadata/docker_metadata.h",
     "kContainersMax"),
    ("docs/limits.md", r"reducers of one node \| ([\d,]+)", "intake/credentials/intake_options.cc", "kReducersMax"),
    ("docs/limits.md", r"of a shard \| ([\d,]+)", "reducer/store/store.h", "kSampleTypesOfShardMax"),
    ("docs/limits.md", r"others; ([\d,]+) of one", "reducer/store/store.h", "kSampleTypesOfMachineMax"),
    ("docs/limits.md", r"or process is read \| ([\d,]+)", "kernel-collector/collector_core.h", "held_samples_max"),
    ("docs/limits.md", r"pods in memory \| ([\d,]+)", "reducer/metadata/live_entities.h", "entities_max"),
    ("docs/limits.md", r"in all; ([\d,]+) of one node", "reducer/metadata/live_entities.h", "node_entities_max"),
    ("docs/limits.md", r"of one node; ([\d,]+) nodes", "reducer/metadata/live_entities.h", "nodes_max"),
    ("docs/limits.md", r"nodes; ([\d,]+) clusters", "reducer/metadata/live_entities.h", "clusters_max"),
    ("docs/limits.md", r"export file://`\S* \| ([\d,]+)", "reducer/export/file_options.h", "series_max"),
    ("docs/limits.md", r"; ([\d,]+) more sample types", "reducer/export/file_sender.h", "kOtherSeriesMax"),
    ("docs/limits.md", r"folded stacks in these files \| ([\d,]+)", "otlp/folded_stacks.h", "kLineBytesMax"),
    ("docs/limits.md", r"bytes; ([\d,]+) bytes of a name", "otlp/folded_stacks.h", "kNameBytesMax"),
    ("docs/export-files.md", r"names of more than ([\d,]+) bytes", "reducer/export/file_name.h", "kFileNameBytesMax"),
    ("docs/export-files.md", r"names beyond ([\d,]+) names", "reducer/export/file_options.h", "series_max"),
    ("docs/limits.md", r"run at once \| ([\d,]+)", "reducer/web/web_server.h", "queries_max"),
    ("docs/limits.md", r"up to ([\d,]+) more queries", "reducer/web/web_server.h", "queries_waiting_max"),
    ("docs/limits.md", r"HTTP connections \| ([\d,]+)", "reducer/web/web_server.h", "connections_max"),
    ("docs/limits.md", r"all metrics; ([\d,]+) metrics", "reducer/profile_metrics/metric_spec.h", "kMetricsMax"),
    ("docs/profile-metrics.md", r"There can be ([\d,]+) metrics", "reducer/profile_metrics/metric_spec.h", "kMetricsMax"),
    ("docs/profile-metrics.md", r"up to ([\d,]+) labels", "reducer/profile_metrics/metric_spec.h", "kLabelsMax"),
    ("docs/profile-metrics.md", r"cut after\s+([\d,]+) bytes", "reducer/profile_metrics/process_labels.h",
     "kMetricLabelBytesMax"),
    ("docs/limits.md", r"rollouts \| ([\d,]+)", "reducer/metadata/rollout_log.h", "kRolloutsMax"),
    ("docs/limits.md", r"flame graph \| ([\d,]+)", "reducer/web/api_queries.cc", "kFlameGraphNodesMax"),
    ("docs/limits.md", r"rows of a table \| ([\d,]+)", "reducer/web/api_queries.cc", "kTopMax"),
    ("docs/limits.md", r"of a timeline \| ([\d,]+)", "reducer/web/api_queries.cc", "kBucketsMax"),
    ("docs/limits.md", r"such as processes or pods \| ([\d,]+)", "reducer/web/api_queries.cc", "kSeriesMax"),
    ("docs/limits.md", r"a selector \| ([\d,]+)", "reducer/query/selector.cc", "kTextBytesMax"),
    ("docs/limits.md", r"bytes, ([\d,]+) matchers", "reducer/query/selector.cc", "kMatchersMax"),
    ("docs/limits.md", r"code objects of language runtimes \| ([\d,]+) of all", "kernel-collector/runtimes/runtime_objects.h",
     "kEntriesMax"),
    ("docs/limits.md", r"code objects of language runtimes \|[^|]* ([\d,]+) and 4 MiB of functions of one process",
     "kernel-collector/processes/code_object_table.h", "kEntriesMax"),
    ("docs/limits.md", r"reads of code objects \|[^|]*; ([\d,]+) objects wait", "kernel-collector/runtimes/runtime_objects.h",
     "kQueueMax"),
    ("docs/limits.md", r"reads of code objects \|[^|]*objects wait, ([\d,]+) of one process",
     "kernel-collector/runtimes/runtime_objects.h", "kProcessQueueMax"),
]
COLUMNS_MAX = 120
README_SENTENCE_WORDS_MAX = 30


def pages(root):
    return [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]


def name_of(root, page):
    return page.relative_to(root).as_posix()


def prose(text):
    """Yields (line number, line) outside code blocks and tables."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside and not line.startswith("|"):
            yield number, line


def check_width(root):
    return [f"{name_of(root, page)}:{number}: {len(line)} columns, {COLUMNS_MAX} at most"
            for page in pages(root) for number, line in prose(page.read_text()) if len(line) > COLUMNS_MAX]


def sentences(text):
    """Yields the sentences of paragraphs, without headings, code and markup."""
    paragraphs = re.split(r"\n\s*\n|\n(?=[-*] )", "\n".join(line if not line.startswith("#") else ""
                                                            for _, line in prose(text)))
    for paragraph in paragraphs:
        flat = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
        yield from (sentence for sentence in re.split(r"(?<=[.!?:])\s+", flat) if sentence)


def check_readme_sentences(root):
    return [f"README.md: a sentence of {len(words)} words: {' '.join(words[:8])} …"
            for words in (sentence.split() for sentence in sentences((root / "README.md").read_text()))
            if len(words) > README_SENTENCE_WORDS_MAX]


def check_repeats(root):
    errors = []
    for page in pages(root):
        text = page.read_text()
        groups = [("row", table.splitlines()) for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
        groups.append(("sentence", [sentence for sentence in sentences(text) if len(sentence.split()) >= 8]))
        for kind, found in groups:
            for one in sorted({one for one in found if found.count(one) > 1}):
                errors.append(f"{name_of(root, page)}: a {kind} stands twice: {one[:60]}")
    return errors


def anchors(page):
    """Returns the anchors of a page's headings: lower case, without punctuation, blanks as hyphens."""
    found = set()
    for line in page.read_text().splitlines():
        if match := re.match(r"#+ (.*)", line):
            plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower())
            found.add(plain.strip().replace(" ", "-"))
    return found


def check_links(root):
    errors = []
    for page in pages(root):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" in link:
                continue
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not target.exists():
                errors.append(f"{name_of(root, page)}: {link}: there is no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                errors.append(f"{name_of(root, page)}: {link}: there is no such heading")
    return errors


def layers(root):
    order = re.search(r'ORDER = """(.*?)"""', (root / "dev/layers").read_text(), re.DOTALL)[1].split()
    return set(order)


def table_folders(text, head):
    """Returns the first column of the table with the head `head`: folders, without their slashes."""
    rows = text.split(head, 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return {name.strip().rstrip("/") for row in rows for name in row.split("|")[1].split(",")}


def check_folders(root):
    text = (root / "docs/architecture.md").read_text()
    order = layers(root)
    errors = []
    stated = table_folders(text, "| folder |")
    wanted = {name.split("/")[0] for name in order} | {"bpf/include"}
    intake = {name.removeprefix("intake/") for name in order if name.startswith("intake/")}
    for table, have, want in (("folder table", stated, wanted),
                              ("table of intake/", table_folders(text, "| in intake/ |"), intake)):
        errors += [f"docs/architecture.md: {table}: {name}/ is missing" for name in sorted(want - have)]
        errors += [f"docs/architecture.md: {table}: {name}/ is not in dev/layers" for name in sorted(have - want)]
    errors += [f"docs/architecture.md: {name}/ does not exist" for name in sorted(stated) if not (root / name).is_dir()]
    built = {path.parent.name for path in root.glob("*/CMakeLists.txt")} - {"deploy", "build-env"}
    errors += [f"dev/layers: {name}/ is built and has no place" for name in sorted(built - wanted)]
    return errors


def constant(text, name):
    match = re.search(rf"(?:\b{name}\s*=|#define {name})\s*([^;/\n]+)", text)
    value = re.sub(r"(?<=\d)[uUlL']+|'", "", match[1]).strip() if match else ""
    return eval(value, {"__builtins__": {}}) if re.fullmatch(r"[\d\s()<*+-]+", value) else None


def check_limits(root):
    errors = []
    for page, pattern, header, name in LIMITS:
        stated = re.search(pattern, (root / page).read_text())
        value = constant((root / header).read_text(), name)
        if stated is None or value is None:
            errors.append(f"{page}: the limit {name} is not found: mend test/docs/checks.py")
        elif int(stated[1].replace(",", "")) != value:
            errors.append(f"{page}: says {stated[1]}, and {name} in {header} is {value}")
    return errors


@functools.cache
def metrics_of(folder):
    names = set()
    for path in folder.rglob("*"):
        if path.suffix in (".cc", ".h") and not path.name.endswith(("_test.cc", "_testing.h")):
            names |= set(re.findall(r'"(tributary_[a-z0-9]+_[a-z0-9_]+)"', path.read_text()))
            if path.name == "process_metrics.cc":
                names |= set(re.findall(r'"(process_[a-z_]+)"', path.read_text()))
    return {name for name in names if not name.startswith("tributary_embedded")}


def check_metrics(root):
    code = set().union(*(metrics_of((root / folder).resolve()) for folder in CODE_FOLDERS))
    page = (root / "docs/metrics.md").read_text()
    documented = set(re.findall(r"(?<![a-z_])(?:tributary|process)_[a-z0-9_]+", page))
    errors = [f"docs/metrics.md: {name} has no row" for name in sorted(code - documented)]
    errors += [f"docs/metrics.md: {name} does not exist" for name in sorted(documented - code)]
    for page in pages(root):
        if page.name not in ("metrics.md", "CHANGELOG.md"):
            named = set(re.findall(r"(?<![a-z_./])tributary_[a-z0-9]+_[a-z0-9_]+(?![a-z0-9_]|…)", page.read_text()))
            errors += [f"{name_of(root, page)}: {name} does not exist" for name in sorted(named - code)]
    errors += [f"{name}: times are in seconds" for name in sorted(code)
               if re.search(r"_(ms|us|ns|[a-z]+seconds|minutes)(_total)?$", name)]
    return errors if len(code) > 40 else [*errors, "fewer than 40 metrics found: mend test/docs/checks.py"]


# One option in the output of --help. docs/options.md has a row for it.
OPTION = re.compile(r"^  (-.*)\n((?:      .*\n)+)", re.MULTILINE)
# The environment variables of an option: one, or several with commas between them.
ENVIRONMENT = re.compile(r"environment ([A-Z0-9_]{4,}(?:, [A-Z0-9_]{4,})*)")


def option_rows(help_text):
    for flags, body in OPTION.findall(help_text):
        lines = [line.strip() for line in body.splitlines()]
        environment = next((match[1].split(", ") for line in lines if (match := ENVIRONMENT.match(line))), [])
        text = lines[0]
        default = re.search(r" \(default ([^)]*)\)$", text)
        text = text[:default.start()] if default else text
        # The default of --data-dir depends on the user. The option's meaning describes it.
        shown = default[1] if default and not flags.startswith("--data-dir ") else ""
        yield "| {} | {} | {} | {} |".format(*(cell.replace("|", "\\|") for cell in (
            f"`{flags}`", text, f"`{shown}`" if shown else "", ", ".join(f"`{name}`" for name in environment))))


def options_page(helps):
    """Returns the page docs/options.md. `helps`: (command, output of its --help)."""
    out = ["# Options", "",
           "Every option of every program, as `--help` prints it. A test compares this page with the programs. To write the",
           "page anew after a build: `UPDATE_GOLDEN=1 dev/test -- -R '^docs$'`", ""]
    for command, text in helps:
        out += [f"## {command}", "", "| option | meaning | default | environment |", "|---|---|---|---|",
                *option_rows(text), ""]
    return "\n".join(out)


def check_options(root, helps):
    errors = []
    page = (root / "docs/options.md").read_text().splitlines()
    wanted = options_page(helps).splitlines()
    errors += [f"docs/options.md: not as --help says: {line[:80]}" for line in wanted if line not in page]
    errors += [f"docs/options.md: no such option: {line[:80]}" for line in page if line not in wanted]
    known = set(re.findall(r"--[a-z][a-z0-9-]+", " ".join(text for _, text in helps)))
    readme = (root / "README.md").read_text()
    for option in sorted(set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]+)", readme)) - known):
        errors.append(f"README.md: there is no option {option}")
    return errors


CHECKS = [check_width, check_readme_sentences, check_repeats, check_links, check_folders, check_limits, check_metrics]


def check_all(root, helps):
    root = pathlib.Path(root)
    return [error for check in CHECKS for error in check(root)] + check_options(root, helps)
