#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tributary::intake {

// The rates of a node that Limits limits. NodeRateName is the label of tributary_intake_throttles_total.
enum class NodeRate : uint8_t {
  kBytes,        // received
  kWork,         // of handling them (decode_work.h)
  kGenerations,  // new generations of dictionaries
};
constexpr size_t kNodeRateCount = 3;

// The reason in Refusals.
inline std::string_view ThrottleReason(NodeRate rate) {
  constexpr std::string_view kReasons[kNodeRateCount] = {"bytes_per_second", "work_per_second",
                                                         "generations_per_second"};
  return kReasons[static_cast<size_t>(rate)];
}

inline std::string_view NodeRateName(NodeRate rate) {
  constexpr std::string_view kNames[kNodeRateCount] = {"bytes", "work", "generations"};
  return kNames[static_cast<size_t>(rate)];
}

}  // namespace tributary::intake
