#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "profile/attributes.h"
#include "reducer/store/store.h"

namespace tributary {

// The version that a process of a service runs, as far as it is known; "": unknown.
struct ServiceVersion {
  std::string version;   // service.version
  std::string image;     // of its container: "shop/web:7"
  std::string digest;    // of the image in its registry, else the image's id; 12 digits
  std::string build_id;  // of its executable, the first digits; only if all fields above are unknown

  // Returns true if both know a field and its values differ. A field that only one of them knows is not a difference:
  // Docker may not have been asked about the container yet.
  bool DiffersFrom(const ServiceVersion& other) const;
  bool empty() const { return version.empty() && image.empty() && digest.empty() && build_id.empty(); }
  // Fills the unknown fields from `other`.
  void Fill(const ServiceVersion& other);

  friend bool operator==(const ServiceVersion&, const ServiceVersion&) = default;
};

// Programs of one service may have different versions, so each executable has its own. `executable` is a base name,
// because folders may contain versions, too.
struct ServiceProgram {
  std::string name_space, name, environment, executable;

  friend auto operator<=>(const ServiceProgram&, const ServiceProgram&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ServiceProgram& p) {
    return H::combine(std::move(h), p.name_space, p.name, p.environment, p.executable);
  }
};

struct ServiceSighting {
  ServiceProgram program;
  ServiceVersion version;
  UnixNs began;  // start of the process
};

// The sightings of one look at the recently sampled processes (service_watch.h). If several processes of a version
// begin in one second, the first stands for all: there may be millions of short-lived processes.
class ServiceSightings {
 public:
  static constexpr size_t kMax = 200'000;

  void Add(ServiceSighting sighting);
  std::vector<ServiceSighting> Take() { return std::move(list_); }
  uint64_t turned_away() const { return turned_away_; }  // refused because there are kMax already

 private:
  std::vector<ServiceSighting> list_;
  absl::flat_hash_map<size_t, size_t> known_;  // hash → its index
  uint64_t turned_away_ = 0;
};

// Some metadata of a process arrives seconds after its first sample. A process is not judged until this long after its
// start.
constexpr int64_t kVersionSettlesNs = 15 * kNsPerSecond;
// Applies if only the executable distinguishes versions: a process that runs for less time is a job, a compiler or a
// test, not a service.
constexpr int64_t kServesAfterNs = 5 * kNsPerMinute;

// Returns the service version of a sampled process. `resource` is the process's resource, `booted` the boot time of its
// node, `build_id` of its executable. Returns nullopt in these cases: the version is unknown; the process has no
// service name or no executable name, or one of these names is too long; the process belongs to a pod (its cluster's
// watcher reports the pod's rollouts); the process's start or `booted` is unknown; the process began less than
// kVersionSettlesNs ago; only the build-id is known, and the process is in no container and no systemd unit (people
// start such processes), or has not run for long.
std::optional<ServiceSighting> SightingOf(const store::ProcessRow& process, const Attributes& resource,
                                          std::string_view build_id, UnixNs booted, UnixNs now);

}  // namespace tributary
