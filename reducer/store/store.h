#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/refusals.h"
#include "base/types.h"
#include "profile/model.h"
#include "profile/process_event.h"
#include "profile/row_batch.h"
#include "reducer/store/export_position.h"
#include "reducer/store/loss_record.h"

// The interface of a store of samples. It has a side for writing and a side for reading. Each shard's store-writer
// thread owns a ShardWriter. Queries and exporters open a StoreReader per shard on each of their threads. A reader does
// not access the memory of a writer. An implementation may store the data in files, in memory, or on another machine.
// reducer/stores.h opens the store that a URL names.

namespace tributary::store {

class OptOutList;

// Ids in one shard of the store. They differ from the ids in a session's dictionary. Another shard may use the same id
// for something else.
using StringId = Strong<struct StoreStringTag, uint32_t>;
using ExecutableNo = Strong<struct StoreExecutableTag, uint32_t>;
using ProcessNo = Strong<struct StoreProcessTag, uint32_t>;
using ThreadNo = Strong<struct StoreThreadTag, uint32_t>;
using NodeNo = Strong<struct StoreNodeTag, uint32_t>;       // of one day's trie; 0 = root
using TypeNo = Strong<struct StoreTypeTag, uint32_t>;       // of samples; 0: a type without a name
using Day = Strong<struct StoreDayTag, int32_t>;            // days since 1970-01-01 UTC
using MachineNo = Strong<struct StoreMachineTag, int64_t>;  // 0: unknown

class ShardWriter {
 public:
  virtual ~ShardWriter() = default;

  struct Outcome {
    uint64_t sequence = 0;         // all batches of the source up to this number are durable
    bool need_dictionary = false;  // true: earlier batches or definitions are missing; nothing of the batch was stored
  };
  // Commits the samples, definitions and accounting of all batches in `group` in one transaction, and sets each
  // source's high-water mark to the number of its last stored batch. A batch whose number is not above the mark is a
  // duplicate: its samples and accounting are ignored. A batch without a number does not change the mark. Returns one
  // outcome per batch, in the order of `group`. After an error, nothing of the group is stored, and the caller must try
  // again. The error is ResourceExhausted if the disk is full.
  virtual absl::StatusOr<std::vector<Outcome>> Commit(std::span<const RowBatch> group) = 0;

  struct SessionState {
    uint64_t durable_sequence = 0;
  };
  // Returns NotFound if the store has nothing about the session.
  virtual absl::StatusOr<SessionState> FindSession(std::span<const uint8_t> session_id) = 0;

  // Sums up the samples of closed minutes (store_times.h), and deletes data that are too old or over the size limit.
  // The writer's thread must call it every few seconds, between commits. The work per call is limited, so that commits
  // do not wait long.
  virtual absl::Status Maintain(UnixNs now) = 0;
};

struct TimeRange {
  UnixNs from, to;  // [from, to)
};

// A machine that sends samples, and the totals of its sessions.
struct NodeStatus {
  std::string node_id, host_name, agent_version, kernel_release, architecture;
  uint32_t cpu_count = 0, sample_rate_hz = 0;
  UnixNs last_seen;
  UnixNs booted;  // boot time, from the session that was seen last; 0: unknown
  // Sums over the machine's sessions. `accounting`: as the collectors reported it. If a session is closed (it has
  // ended), its samples that were neither stored nor reported lost also count as lost here (session_totals.h).
  // `stored`: the committed samples. Besides the built-in sample types, at most kSampleTypesMax types keep their names
  // here.
  NamedAccounting accounting;
  NamedSampleCounts stored;
  uint64_t wire_bytes = 0;              // received
  uint64_t endings[kEndingCount] = {};  // stored samples by ending

  void Add(const NamedAccounting& of_session, const NamedSampleCounts& stored_of_session);
};

// A machine, as its latest session describes it.
struct MachineRow {
  std::string node_id, host_name;
};

// Restricts a scan. The scan visits the rows of these machines and of this type, and no other rows.
struct ScanFilter {
  std::optional<TypeNo> type{};                      // nullopt: all types
  std::optional<std::vector<MachineNo>> machines{};  // sorted; nullopt: all machines

  bool HasNothing() const { return machines && machines->empty(); }
  bool Has(MachineNo machine) const {
    return !machines || std::binary_search(machines->begin(), machines->end(), machine);
  }
  bool Has(TypeNo of) const { return !type || *type == of; }
};

struct ProcessRow {
  ProcessNo no;
  std::string node_id, host_name;
  Pid pid, parent;
  int64_t start_time_ns = 0;
  uint32_t exec_sequence = 0;
  std::string comm, executable_path, container_id, cgroup_path;
  std::string attributes;  // its own resource attributes, for DecodeAttributes
  ExecutableNo executable;
  UnixNs as_of;  // start of the time slot of this description; a later description of the process replaces it
};
using ProcessSet = absl::flat_hash_set<ProcessNo>;
// A process with the ids of its texts, for StoreReader::Text. Takes 64 bytes. A query that reads millions of processes
// compares ids, and reads each distinct text once.
struct ProcessIds {
  ProcessNo no;
  MachineNo machine;
  Pid pid, parent;
  int64_t start_time_ns = 0;
  uint32_t exec_sequence = 0;
  StringId comm, executable_path, container_id, cgroup_path, attributes;
  UnixNs as_of;  // as in ProcessRow
};
struct ThreadRow {
  ThreadNo no;
  ProcessNo process;
  Tid tid;
  std::string name;
};
struct ThreadIds {  // as ProcessIds
  ThreadNo no;
  ProcessNo process;
  Tid tid;
  StringId name;
};
struct ExecutableRow {
  ExecutableId id;
  std::string path;
};
struct FrameRow {
  FrameKind kind = FrameKind::kUnknown;
  bool is_caller = false;
  ExecutableNo executable;
  uint64_t address = 0;   // or a runtime's code object
  uint32_t position = 0;  // as in Frame
  StringId name;          // for StoreReader::Text; 0: sent without a name

  friend bool operator==(const FrameRow&, const FrameRow&) = default;
};

// One day's trie of stacks. A node comes after its parent.
struct Trie {
  std::vector<NodeNo> parents;       // index: NodeNo; [0] = the root, its own parent
  std::vector<uint32_t> frames;      // index: NodeNo → index of frame_rows
  std::vector<FrameRow> frame_rows;  // [0]: no frame
};

// What a reader sees of a day's trie. The nodes do not change, even if the trie gets more nodes.
struct TrieView {
  TrieView() = default;
  // Views all nodes that `trie` has now. They may no longer change. The caller keeps `trie`.
  TrieView(const Trie& trie) : parents(trie.parents), frames(trie.frames), frame_rows(trie.frame_rows) {}
  // The same, and the view keeps `trie`.
  explicit TrieView(const std::shared_ptr<const Trie>& trie) : TrieView(*trie) { owner = trie; }

  std::span<const NodeNo> parents;  // the columns of Trie
  std::span<const uint32_t> frames;
  std::span<const FrameRow> frame_rows;
  std::shared_ptr<const void> owner;  // of the columns; nullptr: the caller keeps them
};

// Some nodes of a day's trie, and all ancestors of these nodes. The nodes have new numbers, which count from 0.
struct TriePart {
  Trie trie;                  // parents before children, as in a whole trie
  std::vector<NodeNo> nodes;  // index: as in `leaves`; value: the leaf's number in `trie`; 0: root or unknown leaf
};

// The stored samples of one chunk, as columns. All columns have the same length (but see `attributes`), and the samples
// are sorted by time.
struct SampleColumns {
  std::string_view node_id;
  TypeNo type;
  Day day;
  std::vector<UnixNs> times;
  std::vector<ProcessNo> processes;
  std::vector<ThreadNo> threads;
  std::vector<NodeNo> nodes;
  std::vector<uint64_t> values;
  std::vector<uint32_t> counts;
  std::vector<Ending> endings;
  std::vector<uint16_t> cpus;
  std::vector<StringId>
      attributes;  // the samples' own attributes, for StoreReader::Text and DecodeAttributes; empty: no sample has any
};

// Sums of samples by thread. All columns have the same length. A thread may have several rows.
struct ThreadWeights {
  TypeNo type;
  std::vector<ThreadNo> threads;
  std::vector<ProcessNo> processes;
  std::vector<uint64_t> values, counts;
};

// Sums over one minute. Each row is the sum of one process's samples that have the same trie node.
struct SumColumns {
  std::string_view node_id;
  TypeNo type;
  Day day;
  UnixNs minute;
  std::vector<ProcessNo> processes;
  std::vector<NodeNo> nodes;
  std::vector<uint64_t> values;
  std::vector<uint64_t> counts;
};

// A stored process event. The texts are valid only while the visitor runs.
struct ProcessEventRow {
  ProcessEventKind kind = ProcessEventKind::kStart;
  UnixNs time;
  std::string_view node_id, host_name;
  Pid pid, parent;
  int64_t start_time_ns = 0;  // of CLOCK_BOOTTIME, as in ProcessKey; 0: a sum
  uint32_t uid = 0;
  std::string_view name, executable_path, container_id, cgroup_path;
  uint32_t events = 1;     // as in ProcessEvent
  uint32_t processes = 1;  // as in ProcessEvent
  ProcessEnd end;          // of an exit or a sum
};

// The result of StoreReader::ScanCommitted.
struct CommittedScan {
  Cursor next;                  // where the next scan continues
  int64_t newest = 0;           // the highest number that a chunk ever had; 0: nothing was committed
  uint64_t expired_chunks = 0;  // chunks that the store had removed before the scan came to them
  // The samples of these chunks, except those of chunks that an earlier release wrote. Also counts samples that were
  // already too old for a chunk when they arrived.
  uint64_t expired_samples = 0;

  // Moves `next` to the start of `chunk`, and counts the chunks before it as expired. `samples`: those before `chunk`,
  // or before its first row that is not sent yet. Samples between `next` and `samples` count as expired. For
  // implementations of ScanCommitted.
  void MoveTo(int64_t chunk, std::optional<uint64_t> samples);
};

using EventVisitor = std::function<absl::Status(const ProcessEventRow&)>;
using SampleVisitor = std::function<absl::Status(const SampleColumns&)>;
using CommittedVisitor = std::function<absl::Status(const SampleColumns&, const Cursor& begin)>;
using ProcessVisitor = std::function<absl::Status(const ProcessRow&)>;
using ProcessIdsVisitor = std::function<absl::Status(std::span<const ProcessIds>)>;
using IdsVisitor = std::function<absl::Status(std::span<const ProcessIds>, std::span<const ThreadIds>)>;
using WeightsVisitor = std::function<absl::Status(const ThreadWeights&)>;
using SumVisitor = std::function<absl::Status(const SumColumns&)>;

// A consistent view of one shard at the moment when the reader was opened. Use a reader on one thread at a time.
class StoreReader {
 public:
  virtual ~StoreReader() = default;

  virtual absl::StatusOr<std::vector<NodeStatus>> Nodes() = 0;
  // Returns the machines that the shard has or had data of.
  virtual absl::StatusOr<std::map<MachineNo, MachineRow>> ListMachines() = 0;
  // Returns the types of the stored samples, by their numbers. May also return types whose samples have expired.
  virtual absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SampleTypes() = 0;
  // Returns the processes that samples in the range refer to. May also return processes of samples shortly before or
  // after the range. If `only` is not nullptr, returns only processes that it contains.
  virtual absl::StatusOr<std::vector<ProcessRow>> Processes(TimeRange range, const ProcessSet* only) = 0;
  // Visits the same processes as Processes(range, nullptr), one by one and in no particular order. For callers that
  // cannot keep all rows in memory: a shard may have millions of short-lived processes. A row is valid only while
  // `visit` runs. If `visit` returns an error, the scan stops and returns this error.
  virtual absl::Status ScanProcesses(TimeRange range, const ProcessVisitor& visit) = 0;
  // Visits the processes of ScanProcesses on the filter's machines, piece by piece. Ignores the filter's type. May
  // visit a process several times: its first row describes it, and later rows are older. The memory does not depend on
  // the number of processes. The rows are valid only while `visit` runs. If `visit` returns an error, the scan stops
  // and returns this error.
  virtual absl::Status ScanProcessIds(TimeRange range, const ScanFilter& filter, const ProcessIdsVisitor& visit) = 0;
  // As ScanProcessIds, with the threads of these and maybe of other processes. A thread may come before its process.
  virtual absl::Status ScanIds(TimeRange range, const ScanFilter& filter, const IdsVisitor& visit) = 0;
  // Returns those threads of the processes in `of` that samples in the range refer to. May also return other threads of
  // these processes.
  virtual absl::StatusOr<std::vector<ThreadRow>> Threads(TimeRange range, const ProcessSet& of) = 0;
  virtual absl::StatusOr<std::vector<ExecutableRow>> Executables() = 0;  // index: ExecutableNo; [0] = unknown
  // Returns one of them, for callers that need few. Returns ExecutableRow{} if there is no such executable.
  virtual absl::StatusOr<ExecutableRow> Executable(ExecutableNo no) = 0;
  // A day's trie may have millions of nodes. LoadTrie returns the whole trie, whose columns its callers share.
  // LoadTriePart is for callers that need only the stacks of some samples: it returns the nodes in `leaves` and their
  // ancestors.
  virtual absl::StatusOr<TrieView> LoadTrie(Day day) = 0;
  virtual absl::StatusOr<TriePart> LoadTriePart(Day day, std::span<const NodeNo> leaves) = 0;
  // Returns "" for id 0. The text is valid as long as the reader, or until ForgetTexts.
  virtual absl::StatusOr<std::string_view> Text(StringId id) = 0;
  virtual void ForgetTexts() = 0;  // frees their memory

  // Visits the samples with a time in the range that the filter has, chunk by chunk. Each chunk is already cut to the
  // range. Does not visit samples that have expired, although ScanSums may still visit their sums. If `visit` returns
  // an error, the scan stops and returns this error.
  virtual absl::Status ScanSamples(TimeRange range, const ScanFilter& filter, const SampleVisitor& visit) = 0;
  absl::Status ScanSamples(TimeRange range, const SampleVisitor& visit) { return ScanSamples(range, {}, visit); }
  // Visits the weights of the threads of these samples. The order is not defined. May visit those of expired ones, too.
  virtual absl::Status ScanThreadWeights(TimeRange range, const ScanFilter& filter, const WeightsVisitor& visit) = 0;
  // Visits sums that contain every sample in the range that the filter has once. For a closed minute that lies wholly
  // in the range, visits the stored sums. For other minutes, sums up the samples in the range. If the samples of such a
  // minute have expired, its stored sums count as a whole if the range contains the minute's first nanosecond. For a
  // gauge, the sum of a minute contains only each process's last snapshot in the minute: its samples with the latest
  // time stamp. A snapshot that arrives after its minute was closed may count only if its process has no other snapshot
  // in the minute.
  virtual absl::Status ScanSums(TimeRange range, const ScanFilter& filter, const SumVisitor& visit) = 0;
  absl::Status ScanSums(TimeRange range, const SumVisitor& visit) { return ScanSums(range, {}, visit); }

  // Visits chunks that were committed after the position `cursor`, in the order of their commits, regardless of the
  // times of their samples. If the cursor is within a chunk, visits only the later rows of this chunk. Each chunk comes
  // with the position of its first row. Stops after the chunk that reaches `samples_max` rows. If `samples_max` is 0,
  // visits no chunk, and only counts the chunks that have expired. A cursor behind `newest` belongs to data that no
  // longer exist, so the scan starts at the first chunk. For exporters.
  virtual absl::StatusOr<CommittedScan> ScanCommitted(const Cursor& cursor, size_t samples_max,
                                                      const CommittedVisitor& visit) = 0;

  // Visits the process events of the filter's machines with a time in the range, chunk by chunk. The order is not
  // defined. If `visit` returns an error, the scan stops and returns this error. A caller that wants only the newest
  // events asks slot by slot (store_times.h): a slot is the unit in which events are indexed.
  virtual absl::Status ScanEvents(TimeRange range, const ScanFilter& filter, const EventVisitor& visit) = 0;
  absl::Status ScanEvents(TimeRange range, const EventVisitor& visit) { return ScanEvents(range, {}, visit); }
  // As ScanCommitted, for process events, with a cursor of its own. Within a chunk, events are in order of time.
  virtual absl::StatusOr<int64_t> ScanCommittedEvents(int64_t cursor, size_t events_max, const EventVisitor& visit) = 0;
  // Returns how many events (rows) of the shard a scan from `cursor` on does not visit: those at or before the cursor,
  // and all that have been removed. So for one cursor, the number grows by the events behind it that were removed. Only
  // differences have a meaning.
  virtual absl::StatusOr<uint64_t> CountPassedEvents(int64_t cursor) = 0;
  // Visits the losses that were committed after the position `cursor`, in the order of their commits, and returns the
  // position behind the last one. A loss is visited kLossWindowNs after its commit, when its record does not change any
  // more, and after a call of ShardWriter::Maintain. A cursor that belongs to data that no longer exist starts over.
  virtual absl::StatusOr<int64_t> ScanCommittedLosses(int64_t cursor, size_t losses_max, const LossVisitor& visit) = 0;

  // Makes this and later calls end soon with DeadlineExceeded once `is_cancelled` returns true. The reader calls it at
  // least once per few milliseconds of work, on its own thread, also while it reads data that no visitor gets.
  virtual void CancelIf(std::function<bool()> is_cancelled) = 0;
  // Returns the time from which on ScanSamples visits all samples of the shard. Earlier samples have expired, and only
  // their sums may be left. UnixNs{0}: none have expired.
  virtual absl::StatusOr<UnixNs> RawFrom() = 0;
};

// Returns the number of the shard that stores the node's data. It is below `shards`.
uint32_t ShardOf(std::string_view node_id, uint32_t shards);

// Limits for sample types that are not built in. Samples of a type beyond a limit are stored without the name of their
// type. A type no longer counts when all days on which it was used have expired. A fleet usually has a few dozen types,
// because its programs use the same type names.
constexpr size_t kSampleTypesOfShardMax = 1024;
constexpr size_t kSampleTypesOfMachineMax = 64;  // types that one machine was the first to send
constexpr uint32_t kBuiltInTypesMax = 255;       // numbers up to here are for built-in types, including future ones

// Options for all kinds of stores.
struct StoreOptions {
  uint32_t shards = 1;                   // shards to write; data that earlier runs wrote to more shards stay readable
  int64_t raw_age_ns = kNsPerDay;        // maximum age of single samples, each with its time stamp
  int64_t sum_age_ns = 7 * kNsPerDay;    // maximum age of minute sums
  int64_t event_age_ns = 7 * kNsPerDay;  // maximum age of process events
  // Limit of all shards' data. Beyond it, the oldest data are removed, first those of nodes over their share.
  uint64_t bytes_max = 10ull << 30;
  uint64_t node_definition_bytes_per_day = 32u << 20;  // names, processes and stacks that one node may add in a day
  size_t sessions_max = 16'384;                        // sessions with a dictionary in memory, per shard
  size_t dictionary_bytes_max = 1u << 30;
  uint32_t nodes_per_day_max = 8u << 20;  // of a day's trie, in each shard
  // Each machine may add so many nodes to a day's trie that is not full (trie_share.h).
  uint32_t machine_nodes_per_day_min = 64u << 10;
  Refusals* refusals = nullptr;    // must outlive the store; null: refusals are not counted by node
  OptOutList* opt_outs = nullptr;  // must outlive the store; null: the samples of all containers are stored
};
constexpr uint32_t kShardsMax = 1024;

// All shards.
class Store {
 public:
  virtual ~Store() = default;
  virtual uint32_t shard_count() const = 0;  // shards that hold data or are written now
  virtual absl::StatusOr<std::unique_ptr<ShardWriter>> OpenWriter(uint32_t shard) = 0;  // once per shard
  virtual absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) = 0;  // any thread
  virtual PositionStore& positions() = 0;
  virtual uint64_t disk_bytes() const = 0;  // bytes that the data take on disk (or in memory, if they are stored there)
};

}  // namespace tributary::store
