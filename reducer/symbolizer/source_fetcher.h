#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "profile/executable_id.h"
#include "reducer/symbolizer/symbol_notices.h"

namespace tributary {

// Fetches texts of source files from debuginfod servers, and keeps them. Find never waits. A file that is not here yet
// is fetched in the background, on the fetcher's own thread, one file after the other. A later call of Find returns the
// text, or reports that no server has it. The kept texts have a size limit: the text that was not requested for the
// longest time is evicted first.
class SourceFetcher {
 public:
  static constexpr size_t kPathBytesMax = 4096;
  static constexpr size_t kFilesMax = 4096;  // remembered, with text or without
  static constexpr size_t kWaitingMax = 256;

  // Waits for a server. NotFound: no server has the file. Other errors: a server may have the file another time.
  using Fetch = std::function<absl::StatusOr<std::string>(const ExecutableId& build_id, const std::string& path)>;
  struct Options {
    uint64_t text_bytes_max = 64u << 20;  // limit of all files
    int64_t missing_retry_ns = 3'600 * kNsPerSecond;
    int64_t failed_retry_ns = 60 * kNsPerSecond;
    bool in_background = true;  // false: FetchWaiting does the work
  };
  enum class State : uint8_t { kNone, kComing, kHere };
  struct Source {
    State state = State::kNone;
    std::shared_ptr<const std::string> text;  // only if state is kHere
  };

  // All references must outlive the object.
  SourceFetcher(Options options, Fetch fetch, SymbolNotices& notices, const Clock& clock, Metrics& metrics);
  ~SourceFetcher() { Stop(); }

  // `path`: as in debug information. Finds only absolute paths, of executables with a GNU build-id. Any thread.
  Source Find(const ExecutableId& build_id, std::string_view path);
  // Nothing is fetched any more. A running fetch ends soon if it checks stopping().
  void Stop();
  bool stopping() const { return stopping_; }

  void FetchWaiting();  // fetches all waiting files

 private:
  using Key = std::pair<ExecutableId, std::string>;
  struct File {
    State state = State::kComing;
    std::shared_ptr<const std::string> text;
    MonotonicNs not_before;  // of a missing file: when it may be asked for again
    std::list<Key>::iterator used;
  };
  void Run();
  // Releases the lock while it fetches.
  void FetchNext(std::unique_lock<std::mutex>& lock);
  void Keep(const Key& key, absl::StatusOr<std::string> text);
  void MakeRoom();

  const Options options_;
  const Fetch fetch_;
  SymbolNotices& notices_;
  const Clock& clock_;
  Counter &dropped_, &evicted_;
  Gauge& bytes_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stopping_{false};     // changes under mutex_
  absl::flat_hash_map<Key, File> files_;  // guarded by mutex_, as all members below
  std::list<Key> recent_;                 // keys of files_, the last asked for first
  std::deque<Key> waiting_;
  uint64_t text_bytes_ = 0;
  std::thread thread_;
};

}  // namespace tributary
