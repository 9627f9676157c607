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

// The version of a service that a process runs. A field is "" if it is unknown.
struct ServiceVersion {
  std::string version;   // service.version
  std::string image;     // of its container: "shop/web:7"
  std::string digest;    // of the image in its registry, else the image's id; 12 digits
  std::string build_id;  // of its executable, the first digits; only if all fields above are unknown

  // Returns true if any field is known in both versions and has different values. A field that is unknown in one of
  // them is no difference: Docker's answer about a container may arrive later.
  bool DiffersFrom(const ServiceVersion& other) const;
  bool empty() const { return version.empty() && image.empty() && digest.empty() && build_id.empty(); }
  // Fills the unknown fields from `other`.
  void Fill(const ServiceVersion& other);

  friend bool operator==(const ServiceVersion&, const ServiceVersion&) = default;
};

// A program of a service. A service may have several programs with different versions, so each executable has its own
// versions. `executable` is the name without directories, because names of directories may contain versions.
struct ServiceProgram {
  std::string name_space, name, environment, executable;

  friend auto operator<=>(const ServiceProgram&, const ServiceProgram&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ServiceProgram& p) {
    return H::combine(std::move(h), p.name_space, p.name, p.environment, p.executable);
  }
};

// One recently sampled process: its program, its version and its start.
struct ServiceSighting {
  ServiceProgram program;
  ServiceVersion version;
  UnixNs began;  // start of the process
};

// The sightings of one check of the recently sampled processes (service_watch.h). Of several processes of a program and
// version that begin in the same second, the list keeps only the first: there may be millions of short-lived processes.
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

// A process is ignored until this long after its start, because its metadata may arrive seconds after its first sample.
constexpr int64_t kVersionSettlesNs = 15 * kNsPerSecond;
// If only the build-id of the executable is known, a process is ignored until it has run for at least this long: before
// that, it may be a job, a compiler or a test.
constexpr int64_t kServesAfterNs = 5 * kNsPerMinute;

// Returns the service version of a sampled process. `resource` is the process's resource, `build_id` belongs to its
// executable, and `booted` is the boot time of its node. Returns nullopt in these cases:
// - The version is unknown.
// - The service name or the executable name is missing, or a name of the ServiceProgram is too long.
// - The process belongs to a pod, because its cluster's watcher reports the pod's rollouts.
// - The start of the process is unknown (or `booted` is), or it is less than kVersionSettlesNs ago.
// - Only the build-id is known, and the process has run for less than kServesAfterNs.
// - Only the build-id is known, and the process is neither in a container nor in a systemd unit: a person may have
//   started it.
std::optional<ServiceSighting> SightingOf(const store::ProcessRow& process, const Attributes& resource,
                                          std::string_view build_id, UnixNs booted, UnixNs now);

}  // namespace tributary
