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

// What a process of a service runs, as far as anybody says it; "" = nobody does.
struct ServiceVersion {
  std::string version;   // service.version
  std::string image;     // of its container: "shop/web:7"
  std::string digest;    // of the image in its registry, else the image's id; 12 digits
  std::string build_id;  // of its executable, the first digits; only where nothing of the above is known

  // Where both know one of them, and it is another. What one of them does not know is no difference: a container that
  // Docker was not asked about yet.
  bool DiffersFrom(const ServiceVersion& other) const;
  bool empty() const { return version.empty() && image.empty() && digest.empty() && build_id.empty(); }
  // Takes what `other` knows and this does not.
  void Fill(const ServiceVersion& other);

  friend bool operator==(const ServiceVersion&, const ServiceVersion&) = default;
};

// Programs of one service may be of different versions: each executable has its own. By its base name: folders hold
// versions, too.
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
  UnixNs began;  // the process
};

// What a look has seen. Of the processes of a version that begin in one second the first stands for all: where they
// live for a moment there are millions.
class ServiceSightings {
 public:
  static constexpr size_t kMax = 200'000;

  void Add(ServiceSighting sighting);
  std::vector<ServiceSighting> Take() { return std::move(list_); }
  uint64_t turned_away() const { return turned_away_; }  // there are too many

 private:
  std::vector<ServiceSighting> list_;
  absl::flat_hash_map<size_t, size_t> known_;  // hash → its index
  uint64_t turned_away_ = 0;
};

// Some of what is known of a process comes seconds after its first sample: until then it is not judged.
constexpr int64_t kVersionSettlesNs = 15 * kNsPerSecond;
// Where only the executable tells versions apart: what runs shorter is a job, a compiler or a test, not a service.
constexpr int64_t kServesAfterNs = 5 * kNsPerMinute;

// What a process that is sampled says of its service's version. `resource`: what it belongs to; `booted`: its node;
// `build_id` of its executable. None: nothing; of a pod, whose rollouts its cluster's watcher tells of; it has begun
// just now, or under an earlier boot; a build-id of what is in no container and no systemd unit (what people start),
// or has not run for long.
std::optional<ServiceSighting> SightingOf(const store::ProcessRow& process, const Attributes& resource,
                                          std::string_view build_id, UnixNs booted, UnixNs now);

}  // namespace tributary
