#include "reducer/sqlite/write_ahead_log.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/status.h"

namespace tributary::store {
namespace {

// A longer log means fewer copies of pages that change with each commit. 4,096 pages are 32 MiB.
constexpr uint64_t kPagesMin = 8, kPagesMax = 4096;
constexpr uint64_t kLogHeaderBytes = 32, kFrameHeaderBytes = 24;
constexpr int kLongWaitMs = 1000;

}  // namespace

absl::StatusOr<std::unique_ptr<WriteAheadLog>> WriteAheadLog::Prepare(Database& database, uint64_t shard_bytes_max) {
  ASSIGN_OR_RETURN(const int64_t page_bytes, database.QueryInt("PRAGMA page_size"));
  const auto page = static_cast<uint64_t>(page_bytes);
  const uint64_t pages = std::clamp(shard_bytes_max / 32 / page, kPagesMin, kPagesMax);
  const uint64_t bytes = kLogHeaderBytes + pages * (page + kFrameHeaderBytes);
  // journal_size_limit: when SQLite begins the log again, it cuts the file to this size.
  RETURN_IF_ERROR(
      database.Execute(fmt::format("PRAGMA wal_autocheckpoint = {}; PRAGMA journal_size_limit = {}", pages, bytes)));
  return std::unique_ptr<WriteAheadLog>(new WriteAheadLog(database, bytes));
}

absl::Status WriteAheadLog::Shorten(UnixNs now) {
  const uint64_t log_bytes = bytes();
  if (log_bytes <= 2 * regular_bytes_) return absl::OkStatus();
  const bool has_rest = now >= waited_in_vain_ && now < UnixNs{waited_in_vain_.value + kNoWaitNs};
  const bool waits = log_bytes > 8 * regular_bytes_ && !has_rest;
  ASSIGN_OR_RETURN(const bool emptied, database_.EmptyLog(waits ? kLongWaitMs : 0));
  if (waits && !emptied) {
    waited_in_vain_ = now;
    ++waits_in_vain_;
  }
  return absl::OkStatus();
}

uint64_t WriteAheadLog::charged_bytes() const { return std::min(bytes(), regular_bytes_); }

uint64_t WriteAheadLog::bytes() const {
  struct stat info{};
  return stat((database_.path() + "-wal").c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace tributary::store
