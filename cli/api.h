#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tributary::cli {

// The reducer's answers (docs/api.md) as structs. A number that is missing in an answer is 0, a missing string is "".

using Counts = std::vector<std::pair<std::string, uint64_t>>;  // by reason or ending, in the answer's order

constexpr std::string_view kOptedOut = "opted_out";  // a key of Totals::lost

struct Totals {
  uint64_t captured = 0, idle = 0, stored = 0, in_flight = 0;
  Counts lost;
  // Without the samples of containers that opted out of profiling: nothing went wrong with them.
  uint64_t TotalLost() const {
    uint64_t sum = 0;
    for (const auto& [reason, count] : lost) sum += reason == kOptedOut ? 0 : count;
    return sum;
  }
  uint64_t OptedOut() const {
    uint64_t sum = 0;
    for (const auto& [reason, count] : lost) sum += reason == kOptedOut ? count : 0;
    return sum;
  }
};

// The totals of all samples of one type, for example of type cpu.
struct TypeTotals {
  std::string name, unit;
  Totals totals;
};

struct StatusAnswer {
  struct Node {
    std::string id, host, kernel, architecture, version;
    uint64_t cpus = 0, sample_rate_hz = 0, last_seen_ms = 0, wire_bytes = 0;
    bool connected = false;
    Totals totals;
    Counts stack_health;
  };
  struct Cluster {
    std::string id;
    bool connected = false;
    uint64_t entities = 0, last_update_ms = 0;  // last_update_ms 0: none since the reducer started
  };
  struct Refusal {
    std::string node, reason;
    uint64_t amount = 0;
  };
  struct Damage {
    std::string kind, reason;
    uint64_t shard = 0, count = 0;
  };
  std::string version;
  uint64_t uptime_s = 0;
  Totals total;
  std::vector<TypeTotals> types;  // they add up to `total`; empty: all samples are of type cpu
  Totals process_events;          // not part of `total`; an older reducer has none
  Counts stack_health;
  std::vector<Node> nodes;
  std::vector<Cluster> clusters;
  std::vector<Refusal> refusals;  // an older reducer sends none
  std::vector<Damage> damage;
  double reducer_cpu_seconds = 0;
  uint64_t reducer_rss_bytes = 0, reducer_disk_bytes = 0, shards = 0, symbol_tables = 0;
};

struct StackHealthAnswer {
  struct Executable {
    std::string name, build_id;
    uint64_t samples = 0;
    Counts endings;
    std::vector<std::string> programs;
  };
  uint64_t samples = 0, ns = 0;
  Counts endings;
  std::optional<double> complete_share;  // complete stacks / stacks with a user part; nullopt: no stack has one
  std::vector<Executable> executables;   // executables with incomplete stacks, the most incomplete stacks first
  uint64_t truncated_executables = 0;
};

struct SymbolTableAnswer {
  std::string source, origin;
  uint64_t functions = 0, bytes = 0;
  bool contested = false;
  std::vector<std::string> nodes;  // that have this table, if it came from nodes
};

struct SymbolsAnswer {
  struct Executable {
    std::string build_id, name, path;
    uint64_t total_ns = 0, addresses = 0, unnamed_addresses = 0;
    std::optional<SymbolTableAnswer> symbols;
  };
  struct Notice {
    std::string build_id, text;
    uint64_t times = 0;
  };
  uint64_t total_ns = 0;
  std::vector<Executable> executables;
  uint64_t truncated = 0;
  std::vector<Notice> notices;  // the newest first
};

// The type and unit of an answer's values. Answers of earlier releases contain neither type nor unit: their values are
// CPU time in nanoseconds.
struct Measure {
  std::string type = "cpu", unit = "nanoseconds";
  bool is_gauge = false;         // true: values are means over the time, not sums
  uint64_t covered_from_ms = 0;  // the answer lacks earlier samples, because they have expired; 0: it lacks none
  bool IsCpuTime() const { return type == "cpu" && unit == "nanoseconds" && !is_gauge; }
  friend bool operator==(const Measure&, const Measure&) = default;
};

struct RolloutsAnswer {
  struct Version {
    std::string hash, images, version;
  };
  struct Use {
    uint64_t from_ms = 0, to_ms = 0;
    uint64_t value = 0;
  };
  struct Rollout {
    uint64_t at_ms = 0;
    std::string kind, name_space, name;
    std::string environment, executable;  // only for a service
    Version now, previous;
    Use before, after;
  };
  Measure measure;
  std::vector<Rollout> rollouts;  // the newest first
  bool truncated = false;
};

struct EventsAnswer {
  struct Event {
    uint64_t at_ms = 0;
    std::string kind, host, node_id;
    int64_t pid = 0;
    std::string name, executable, executable_path;
    std::string container_id, container, pod, name_space, unit;
    // The rest is for kind exit and sum.
    uint64_t exit_code = 0, signal = 0;
    std::string signal_name;
    bool core_dumped = false, oom_killed = false;
    uint64_t run_ns = 0, cpu_ns = 0, peak_rss_bytes = 0;
    uint64_t processes = 0;  // of a sum
  };
  uint64_t from_ms = 0, to_ms = 0;
  std::vector<Event> events;
  std::string next;  // cursor; "": there are no more events
  bool truncated = false;
};

// Short-lived processes, by program.
struct EventProgramsAnswer {
  struct Use {
    uint64_t processes = 0, failed = 0, cpu_ns = 0, run_ns = 0, peak_rss_bytes = 0;
    double share = 0;  // of the CPU time of all processes that ended
  };
  struct Program {
    std::string name, executable, executable_path, container, pod, name_space;
    Use use;
  };
  std::vector<Program> programs;
  Use others, total;
};

struct UploadAnswer {
  std::string build_id;
  bool stored = false;
  SymbolTableAnswer symbols;
  std::vector<std::string> remarks;
};

// A kind of frame (native, kernel, inlined, …), as an answer describes it.
struct FrameKind {
  std::string name, color, mark;
  friend bool operator==(const FrameKind&, const FrameKind&) = default;
};
// The number of a kind is its index in the answer's list of kinds. The kinds below have these numbers in every answer.
// Answers of earlier releases have no such list: their frames are only of these kinds.
enum KnownKind : uint8_t { kRoot = 0, kNative = 1, kKernel = 2, kInlined = 3, kUnknown = 4 };
std::vector<FrameKind> KnownKinds();

enum class Unit { kValue, kCount };  // the drawn number: the value in its unit, or the number of samples

struct Values {
  uint64_t ns = 0, count = 0;
  uint64_t Of(Unit unit) const { return unit == Unit::kValue ? ns : count; }
  Values& operator+=(const Values& other) {
    ns += other.ns;
    count += other.count;
    return *this;
  }
  friend bool operator==(const Values&, const Values&) = default;
};

struct LinesAnswer {
  struct Line {
    std::string file;  // "": unknown
    uint64_t line = 0;
    std::string text;
    Values self, total;
  };
  Measure measure;
  std::vector<Line> lines;
  uint64_t files_coming = 0;  // source files that are being fetched now
};

struct TopAnswer {
  struct Function {
    std::string name, executable;
    uint8_t kind = kUnknown;  // index into `kinds`
    Values self, total;
  };
  Measure measure;
  Values total;
  std::vector<Function> functions;
  std::vector<FrameKind> kinds = KnownKinds();
  bool has_languages = false;  // of the kinds; for CheckFrameOptions
};

struct SeriesAnswer {
  struct Process {
    int64_t pid = 0, parent_pid = 0;
    std::string command;
    Values values;
  };
  std::vector<Process> processes;
  bool truncated = false;
};

}  // namespace tributary::cli
