#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "reducer/query/event_place.h"
#include "reducer/store/event_record.h"

namespace tributary {

// An event that may be the end or the begin of a restart (restart_finder.h), and where its process ran.
struct RestartCandidate {
  store::EventRecord record;
  EventPlace place;
};

// Finds the begin that follows an end of the same program in the same place. A hostile machine may have 20,000 ends and
// 50,000 begins of one program in an hour, so a lookup takes logarithmic time.
class RestartIndex {
 public:
  // `begins` must be sorted by time, and outlive the index.
  explicit RestartIndex(std::span<const RestartCandidate> begins);

  // Returns the first begin after `end` in the same place, whose process runs in another container (id) or has the same
  // parent as the process of `end`. nullptr: there is none.
  const RestartCandidate* FirstAfter(const RestartCandidate& end) const;

 private:
  // The parts of a place that must be equal, and the parent's pid if it must be equal.
  enum class Match : uint8_t { kUnit, kCgroup, kContainerId, kNamedContainerId, kNames };
  using Key = std::tuple<Match, std::string_view, std::string_view, std::string_view, std::string_view, int32_t>;
  struct Positions {
    std::vector<uint32_t> begins;  // in begins_
    // Of kNames: for each element of `begins`, the index of the next element with another container id.
    std::vector<uint32_t> next_container;
  };

  static Key KeyOf(Match match, const RestartCandidate& candidate);
  // Returns the index in `positions.begins` of the first begin after `time`.
  size_t FirstAfter(const Positions& positions, UnixNs time) const;
  uint32_t FirstAfter(const Key& key, UnixNs time) const;
  // Returns the first begin in a container with the same names and another id.
  uint32_t FirstInOtherContainer(const RestartCandidate& end) const;

  const std::span<const RestartCandidate> begins_;
  absl::flat_hash_map<Key, Positions> positions_;
};

}  // namespace tributary
