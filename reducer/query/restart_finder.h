#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/query/event_place.h"
#include "reducer/query/event_selection.h"
#include "reducer/query/restart_index.h"
#include "reducer/store/event_record.h"

namespace tributary {

// A program that ended and began to run again.
struct Restart {
  store::EventRecord begin;  // the start or exec of the new process
  EventPlace place;          // of the new process
  ProcessEnd ended;          // how the old process ended; of an unknown end: empty
  bool new_container = false;
};

// Finds restarts. The start or exec B is the restart of a process that ended with the event E if:
//   - both ran the same executable path on the same machine, in the same container (by name and pod; by id if the name
//     is unknown) or systemd unit (or cgroup, if there is no unit);
//   - B is the first such event after E, at most 60 s later;
//   - B's process runs in another container (id) than E's process, or both have the same parent;
//   - E does not look like the normal end of a short command. That is: a signal other than SIGPIPE ended it, or its end
//     is unknown, or it ran for at least 1 s and its exit code was not 0, or it ran for at least 10 s. Without this
//     rule, every shell loop and every build would consist of restarts.
// So a restart depends only on the events of the minute before it. Used by one thread, for one shard.
class RestartFinder {
 public:
  static constexpr int64_t kGapNs = 60 * kNsPerSecond;
  static constexpr int64_t kFailedRunNs = kNsPerSecond, kRunNs = 10 * kNsPerSecond;
  // Limits for one window. If there are more, some restarts are not found, and is_cut() returns true. kTextBytesMax is
  // for the texts of these ends, and again for those of the begins.
  static constexpr size_t kEndsMax = 20'000, kBeginsMax = 50'000, kTextBytesMax = 32u << 20;

  // Both must outlive the finder.
  RestartFinder(const QueryRequest& request, EventSelection& selection) : request_(request), selection_(selection) {}

  // Returns the restarts whose `begin` is in the window and selected, in order of time.
  absl::StatusOr<std::vector<Restart>> Find(store::StoreReader& reader, store::TimeRange window);
  bool is_cut() const { return is_cut_; }

 private:
  using Program = std::pair<std::string, std::string>;  // node, executable path
  struct Candidates {
    std::vector<RestartCandidate> ends, begins;
  };

  absl::Status CollectEnds(store::StoreReader& reader, store::TimeRange range);
  absl::Status CollectBegins(store::StoreReader& reader, store::TimeRange range);
  void AddCandidate(const store::ProcessEventRow& event, std::vector<RestartCandidate>* to);
  absl::Status Match(Candidates& of, store::TimeRange window, std::vector<Restart>* found);

  const QueryRequest& request_;
  EventSelection& selection_;
  absl::flat_hash_map<Program, Candidates> programs_;
  size_t text_bytes_ = 0;  // of the candidates that are being collected
  bool is_cut_ = false;
};

}  // namespace tributary
