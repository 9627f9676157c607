#include "reducer/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/status.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/executable_reader.h"
#include "reducer/sqlite/maintenance_tasks.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/shard_reader.h"
#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/trie_cache.h"

namespace tributary::store {
namespace {

constexpr size_t kCachedNodesMax = 32u << 20;  // 8 bytes per node, and the frames

uint64_t FileBytes(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

absl::Status MakeDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus("create data directory", path, error.value());
  return absl::OkStatus();
}

}  // namespace

SqliteStore::SqliteStore(std::string directory, const StoreOptions& options, const Clock& clock, Metrics& metrics)
    : directory_path_(std::move(directory)),
      options_(options),
      clock_(clock),
      metrics_(metrics),
      tries_(std::make_unique<TrieCache>(kCachedNodesMax)) {}

SqliteStore::~SqliteStore() = default;

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(std::string directory, const StoreOptions& options,
                                                               const Clock& clock, Metrics& metrics) {
  if (options.shards == 0 || options.shards > kShardsMax) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("the number of shards must be 1 to {}", kShardsMax));
  }
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(directory), options, clock, metrics));
  RETURN_IF_ERROR(store->Start());
  return store;
}

absl::Status SqliteStore::Start() {
  RETURN_IF_ERROR(MakeDirectory(directory_path_));
  RETURN_IF_ERROR(Lock());
  ASSIGN_OR_RETURN(Database directory, OpenDirectoryForWriting(directory_path_ + "/store.db"));
  directory_ = std::make_unique<Database>(std::move(directory));
  shard_count_ = options_.shards;
  while (shard_count_ < kShardsMax && access(ShardPath(shard_count_).c_str(), F_OK) == 0) ++shard_count_;
  writer_opened_.resize(shard_count_);
  while (damage_.size() < shard_count_) {
    damage_.push_back(std::make_unique<DamageReports>());
    executables_.push_back(std::make_unique<SharedExecutableNumbers>());
    failures_.push_back(std::make_unique<TaskFailures>(ShardPath(static_cast<uint32_t>(failures_.size())),
                                                       *damage_.back(), clock_, metrics_));
  }
  return MoveSessions();
}

absl::Status SqliteStore::Lock() {
  const std::string path = directory_path_ + "/LOCK";
  lock_ = Fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_.valid()) return ErrnoStatus("open", path, errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus("lock", path, errno);
    char pid[16] = {};
    ssize_t size = pread(lock_.get(), pid, sizeof(pid) - 1, 0);
    return Error(
        absl::StatusCode::kAlreadyExists,
        fmt::format("data directory {} is in use by another reducer (pid {}): stop it or choose another directory",
                    directory_path_, std::string_view(pid, static_cast<size_t>(std::max<ssize_t>(size, 0)))));
  }
  const std::string pid = fmt::format("{}", getpid());
  if (ftruncate(lock_.get(), 0) != 0 || pwrite(lock_.get(), pid.data(), pid.size(), 0) < 0) {
    return ErrnoStatus("write", path, errno);
  }
  return absl::OkStatus();
}

std::string SqliteStore::ShardPath(uint32_t shard) const {
  return fmt::format("{}/shard-{}.db", directory_path_, shard);
}

absl::StatusOr<std::unique_ptr<ShardWriter>> SqliteStore::OpenWriter(uint32_t shard) {
  {
    std::lock_guard lock(mutex_);
    if (shard >= shard_count_) return absl::InvalidArgumentError("no such shard");
    if (writer_opened_[shard]) return absl::FailedPreconditionError("the shard has a writer already");
    writer_opened_[shard] = true;
  }
  ShardWriterOptions options;
  options.path = ShardPath(shard);
  options.sessions = {options_.sessions_max, options_.dictionary_bytes_max, options_.refusals};
  options.trie = {options_.nodes_per_day_max, options_.machine_nodes_per_day_min};
  options.refusals = options_.refusals;
  options.opt_outs = options_.opt_outs;
  options.node_definition_bytes_per_day = options_.node_definition_bytes_per_day;
  options.maintenance = {.raw_age_ns = options_.raw_age_ns,
                         .sum_age_ns = options_.sum_age_ns,
                         .event_age_ns = options_.event_age_ns,
                         .bytes_max = options_.bytes_max / shard_count_,
                         .damage = damage_[shard].get(),
                         .failures = failures_[shard].get()};
  return SqliteShardWriter::Open(std::move(options), clock_, metrics_);
}

absl::StatusOr<std::unique_ptr<StoreReader>> SqliteStore::OpenReader(uint32_t shard) {
  if (shard >= shard_count_) return absl::InvalidArgumentError("no such shard");
  return SqliteShardReader::Open(ShardPath(shard), shard, {*tries_, *executables_[shard], *damage_[shard]});
}

std::vector<DamageEntry> SqliteStore::ListDamage() {
  std::vector<DamageEntry> entries;
  for (uint32_t shard = 0; shard < shard_count_ && entries.size() < kEntriesMax; ++shard) {
    damage_[shard]->AppendListed(shard, &entries);
  }
  if (entries.size() > kEntriesMax) entries.resize(kEntriesMax);
  return entries;
}

uint64_t SqliteStore::disk_bytes() const {
  uint64_t bytes = 0;
  std::error_code ignored;  // a file that vanishes in the meantime counts 0
  for (const auto& entry : std::filesystem::directory_iterator(directory_path_, ignored)) {
    if (entry.is_regular_file(ignored)) bytes += FileBytes(entry.path().string());
  }
  return bytes;
}

// Writes each session to its new shard before it deletes the session from the old shard, and writes the new number of
// shards last. After a crash on the way, the next start makes the same moves again, with the same result.
absl::Status SqliteStore::MoveSessions() {
  ASSIGN_OR_RETURN(int64_t shards_before, directory_->QueryInt("SELECT shards FROM layout"));
  if (shards_before == options_.shards) return absl::OkStatus();
  constexpr std::string_view kColumns =
      "session.id, boot_id, last_seen, durable_sequence, captured, idle, lost, stored, wire_bytes, endings, "
      "closed_reason, closed_captured, boot_ns, types";
  for (uint32_t from = 0; shards_before != 0 && from < shard_count_; ++from) {
    if (access(ShardPath(from).c_str(), F_OK) != 0) continue;
    ASSIGN_OR_RETURN(Database source, OpenShardForWriting(ShardPath(from)));
    std::vector<std::pair<int64_t, std::string>> machines;
    ASSIGN_OR_RETURN(Statement all, source.Prepare("SELECT id, node_id FROM machine"));
    for (;;) {
      ASSIGN_OR_RETURN(bool row, all.Step());
      if (!row) break;
      machines.emplace_back(all.Int(0), all.Bytes(1));
    }
    for (const auto& [machine, node_id] : machines) {
      const uint32_t to = ShardOf(node_id, options_.shards);
      if (to == from) continue;
      {
        ASSIGN_OR_RETURN([[maybe_unused]] Database created, OpenShardForWriting(ShardPath(to)));
      }
      ASSIGN_OR_RETURN(Statement attach, source.Prepare("ATTACH CAST(? AS TEXT) AS target"));
      RETURN_IF_ERROR(attach.Bind(ShardPath(to)).Run());
      RETURN_IF_ERROR(source.Execute(fmt::format(
          "INSERT OR IGNORE INTO target.machine (node_id, host_name, agent_version, kernel_release, architecture, "
          "cpu_count, sample_rate_hz) SELECT node_id, host_name, agent_version, kernel_release, architecture, "
          "cpu_count, sample_rate_hz FROM main.machine WHERE id = {0};"
          "INSERT OR REPLACE INTO target.session (machine, id, boot_id, last_seen, durable_sequence, captured, idle, "
          "lost, stored, wire_bytes, endings, closed_reason, closed_captured, boot_ns, types) SELECT t.id, {1} FROM "
          "main.session JOIN main.machine m ON "
          "m.id = session.machine JOIN target.machine t ON t.node_id = m.node_id WHERE session.machine = {0};"
          "DELETE FROM main.session WHERE machine = {0};"
          "DETACH target",
          machine, kColumns)));
    }
  }
  return directory_->Execute(fmt::format("UPDATE layout SET shards = {}", options_.shards));
}

absl::StatusOr<std::optional<ExportPosition>> SqliteStore::LoadPosition(std::string_view exporter, uint32_t shard) {
  std::lock_guard lock(mutex_);
  ASSIGN_OR_RETURN(Statement statement,
                   directory_->Prepare("SELECT chunk, next_rows, samples, request_end_chunk, request_end_rows, "
                                       "request_end_samples, request_session, request_sender, request_first, "
                                       "request_count, request_content FROM cursor "
                                       "WHERE exporter = CAST(? AS TEXT) AND shard = ?"));
  ASSIGN_OR_RETURN(bool row, statement.Bind(exporter, shard).Step());
  if (!row) return std::nullopt;
  const auto number = [&](int column) { return static_cast<uint64_t>(statement.Int(column)); };
  const auto cursor = [&](int column) {
    Cursor out{.chunk = statement.Int(column), .rows = number(column + 1), .samples = std::nullopt};
    if (!statement.IsNull(column + 2)) out.samples = number(column + 2);
    return out;
  };
  ExportPosition position{.cursor = cursor(0), .request = std::nullopt};
  const std::string_view session = statement.Bytes(6);
  if (session.size() == ExportSession().size()) {
    position.request = ExportRequest{.end = cursor(3),
                                     .sender = std::string(statement.Bytes(7)),
                                     .session = {},
                                     .first = number(8),
                                     .count = number(9),
                                     .content = number(10)};
    std::copy(session.begin(), session.end(), position.request->session.begin());
  }
  return position;
}

// Exporters save a position for each request. A commit that only writes the log survives kill -9 and costs about 20 µs.
// A commit that syncs the log may take milliseconds, and slows down the commits of shards on the same disk. A synced
// commit makes all earlier commits durable too.
absl::Status SqliteStore::SavePosition(std::string_view exporter, uint32_t shard, const ExportPosition& position) {
  std::lock_guard lock(mutex_);
  const MonotonicNs now = clock_.Monotonic();
  const bool sync = !synced_at_ || now.value - synced_at_->value >= kSyncPositionsNs;
  RETURN_IF_ERROR(directory_->Execute(sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL"));
  ASSIGN_OR_RETURN(Statement statement,
                   directory_->Prepare(
                       "INSERT OR REPLACE INTO cursor (exporter, shard, chunk, next_rows, samples, request_end_chunk, "
                       "request_end_rows, request_end_samples, request_session, request_sender, request_first, "
                       "request_count, request_content) VALUES (CAST(?1 AS TEXT), ?2, ?3, ?4, "
                       "CASE WHEN ?6 THEN ?5 END, ?7, ?8, CASE WHEN ?10 THEN ?9 END, CASE WHEN ?11 THEN ?12 END, "
                       "CAST(?13 AS TEXT), ?14, ?15, ?16)"));
  const Cursor& cursor = position.cursor;
  const ExportRequest request = position.request.value_or(ExportRequest{});
  const std::string session(request.session.begin(), request.session.end());
  statement.Bind(exporter, shard, cursor.chunk, cursor.rows, cursor.samples.value_or(0), cursor.samples.has_value(),
                 request.end.chunk, request.end.rows, request.end.samples.value_or(0), request.end.samples.has_value(),
                 position.request.has_value(), session, request.sender, request.first, request.count, request.content);
  RETURN_IF_ERROR(statement.Run());
  if (sync) synced_at_ = now;
  return absl::OkStatus();
}

}  // namespace tributary::store
