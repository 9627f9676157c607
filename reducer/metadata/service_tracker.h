#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "reducer/metadata/service_version.h"

namespace tributary {

// Detects from samples when the processes of a service begin to run another version (docs/rollouts.md). For each
// program, it keeps at most kVersionsMax of the versions that were seen. When a program is first seen, the current
// version is that of the process that began last. Each rollout makes its version the current one. A rollout begins with
// the first process of a new version, if that process began after all processes of the current version. The first
// version seen of a program is not a rollout. A later version is not a rollout either if its process began before the
// program was first seen.
//
// While versions run next to each other, as in a rolling upgrade, a process that begins under the old version is not a
// rollback. It counts as a rollback only if no process of the current version has been seen for kGoneNs. A program on a
// build machine may change its version all the time. After kStreakMax changes with less than kCalmNs between them, its
// changes are not reported until it has kept one version for kCalmNs.
//
// The class does no I/O and reads no clock. Use it on one thread. The state of a program takes about 500 bytes, and at
// most 2 KB if names have usual lengths.
class ServiceTracker {
 public:
  static constexpr size_t kProgramsMax = 20'000;
  static constexpr int64_t kCrowdedKeepNs = 60 * kNsPerMinute;  // keep_ns if there are kProgramsMax programs
  static constexpr size_t kVersionsMax = 8;                     // remembered per program
  static constexpr int kStreakMax = 6;
  static constexpr int64_t kCalmNs = 60 * kNsPerMinute;
  static constexpr int64_t kGoneNs = 10 * kNsPerMinute;

  struct Version {
    ServiceVersion identity;
    UnixNs newest;      // when its latest process began
    UnixNs seen;        // when it was last sampled
    UnixNs back_since;  // not for the current version: start of the first process that may be a rollback; 0: none
  };
  struct Program {
    UnixNs first_seen;              // a process that began before is not a rollout
    std::vector<Version> versions;  // the current one first
    int streak = 0;                 // changes with less than kCalmNs between them
    UnixNs changed;
    bool is_dirty = true;  // changed since it was saved
  };

  struct Change {
    ServiceProgram program;
    ServiceVersion now, previous;
    UnixNs at;
  };
  // `sightings`: all recently sampled processes (service_watch.h), at the time `now`. Returns the rollouts that the
  // sightings show.
  std::vector<Change> See(std::vector<ServiceSighting> sightings, UnixNs now);
  // Removes the programs that were not seen for `keep_ns`. If there are kProgramsMax programs, removes those that were
  // not seen for kCrowdedKeepNs, but not until kCrowdedKeepNs after the first call of See. Returns the removed
  // programs.
  std::vector<ServiceProgram> Forget(UnixNs now, int64_t keep_ns);

  // Restores the state of a program from before a restart.
  void Restore(const ServiceProgram& program, std::string_view state);
  static std::string Encode(const Program& program);

  absl::flat_hash_map<ServiceProgram, Program>& programs() { return programs_; }
  uint64_t turned_away() const { return turned_away_; }
  uint64_t muted() const { return muted_; }

 private:
  std::optional<Change> Judge(const ServiceSighting& sighting, UnixNs now);
  std::optional<Change> SetCurrent(const ServiceProgram& name, Program& program, size_t version, UnixNs at);

  absl::flat_hash_map<ServiceProgram, Program> programs_;
  UnixNs first_pass_;  // until kGoneNs after this time, no version counts as gone
  uint64_t turned_away_ = 0, muted_ = 0;
};

}  // namespace tributary
