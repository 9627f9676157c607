#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "reducer/metadata/service_version.h"

namespace tributary {

// Notices when the processes of a service begin to run another version, by what is sampled (docs/rollouts.md). Of every
// program its versions are known, and which of them is the current one: that of the process that began last. A rollout
// begins with the first process of a version that is new, and began after all of the current one. What is seen first of
// a program is none, nor is what began before that.
//
// While versions run beside each other, as in a rolling upgrade, a process that begins under the old one is no way
// back: that is one when nothing of the current version has been seen for kGoneNs. A program of ever other versions, as
// a build machine's, is muted after kStreakMax of them, until it has kept one for kCalmNs.
//
// Pure. One thread. A program takes about 500 bytes, 2 KB at most with texts of usual length.
class ServiceTracker {
 public:
  static constexpr size_t kProgramsMax = 20'000;
  static constexpr int64_t kCrowdedKeepNs = 60 * kNsPerMinute;  // where there are as many
  static constexpr size_t kVersionsMax = 8;                     // of a program that are remembered
  static constexpr int kStreakMax = 6;
  static constexpr int64_t kCalmNs = 60 * kNsPerMinute;
  static constexpr int64_t kGoneNs = 10 * kNsPerMinute;

  struct Version {
    ServiceVersion what;
    UnixNs newest;      // when the latest of its processes began
    UnixNs seen;        // when it was sampled last
    UnixNs back_since;  // of another than the current one: when the first process began that may be a way back; 0: none
  };
  struct Program {
    UnixNs met;                     // nothing that began before is a rollout
    std::vector<Version> versions;  // the current one first
    int streak = 0;                 // changes, less than kCalmNs between them
    UnixNs changed;
    bool is_dirty = true;  // since it was saved
  };

  struct Change {
    ServiceProgram program;
    ServiceVersion now, previous;
    UnixNs at;
  };
  // What runs at `now`, all of it.
  std::vector<Change> See(std::vector<ServiceSighting> sightings, UnixNs now);
  // Those that have not been seen for so long, or for kCrowdedKeepNs where there is no room for others; returns them.
  std::vector<ServiceProgram> Forget(UnixNs now, int64_t keep_ns);

  // What it knew before a restart.
  void Restore(const ServiceProgram& program, std::string_view state);
  static std::string Encode(const Program& program);

  absl::flat_hash_map<ServiceProgram, Program>& programs() { return programs_; }
  uint64_t turned_away() const { return turned_away_; }
  uint64_t muted() const { return muted_; }

 private:
  std::optional<Change> Judge(const ServiceSighting& sighting, UnixNs now);
  std::optional<Change> SetCurrent(const ServiceProgram& name, Program& program, size_t version, UnixNs at);

  absl::flat_hash_map<ServiceProgram, Program> programs_;
  UnixNs first_pass_;  // until kGoneNs after it nothing is known to be gone
  uint64_t turned_away_ = 0, muted_ = 0;
};

}  // namespace tributary
