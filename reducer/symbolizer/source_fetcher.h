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

// Fetches the texts of source files from debuginfod servers, and caches them in memory. Find does not block. If a text
// is not in the cache, it is fetched in the background, on the fetcher's own thread, one file at a time. A later call
// of Find returns the text, or State::kNone if it could not be fetched. If the cache is full, the least recently
// requested texts are evicted.
class SourceFetcher {
 public:
  static constexpr size_t kPathBytesMax = 4096;
  static constexpr size_t kFilesMax = 4096;  // in the cache, including files that were not found
  static constexpr size_t kWaitingMax = 256;

  // Fetches one file; may block until a server has answered. NotFound: no server has the file. Unavailable: a server
  // did not answer; the file is requested again after `failed_retry_ns`.
  using Fetch = std::function<absl::StatusOr<std::string>(const ExecutableId& build_id, const std::string& path)>;
  struct Options {
    uint64_t text_bytes_max = 64u << 20;  // limit of all files
    int64_t missing_retry_ns = 3'600 * kNsPerSecond;
    int64_t failed_retry_ns = 60 * kNsPerSecond;
    bool in_background = true;  // false: there is no thread; the owner calls FetchWaiting
  };
  enum class State : uint8_t { kNone, kComing, kHere };
  struct Source {
    State state = State::kNone;
    std::shared_ptr<const std::string> text;  // only if state is kHere
  };

  // All references must outlive the SourceFetcher.
  SourceFetcher(Options options, Fetch fetch, SymbolNotices& notices, const Clock& clock, Metrics& metrics);
  ~SourceFetcher() { Stop(); }

  // `path` is the path in the debug information of the executable. Returns kNone for a path that is not absolute, and
  // for an executable without a GNU build-id. Any thread.
  Source Find(const ExecutableId& build_id, std::string_view path);
  // Starts no more fetches, and waits for the running one, which should check stopping() and end early.
  void Stop();
  bool stopping() const { return stopping_; }

  void FetchWaiting();  // fetches all waiting files

 private:
  using Key = std::pair<ExecutableId, std::string>;
  struct File {
    State state = State::kComing;
    std::shared_ptr<const std::string> text;
    MonotonicNs not_before;  // of a file that was not found: time of the next request
    std::list<Key>::iterator used;
  };
  void Run();
  // Fetches the first waiting file. Releases the lock during the fetch.
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
  std::list<Key> recent_;                 // keys of files_, the most recently requested first
  std::deque<Key> waiting_;
  uint64_t text_bytes_ = 0;
  std::thread thread_;
};

}  // namespace tributary
