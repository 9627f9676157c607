#pragma once

#include <array>
#include <string_view>

namespace tributary::sim {

// A rule of the protocol that a run may be told to break, to see that the simulator notices.
enum class Break {
  kNone,
  kAckBeforeCommit,    // the reducer acknowledges what it has queued
  kMarkBeforeSamples,  // the high-water mark becomes durable in a transaction of its own, before the samples
  kDuplicateCounted,   // a session's mark is told before what is queued of it is durable; what then comes twice is
                       // stored twice
  kIdsReused,          // ids of a new generation are looked up in the old one
  kCreditIgnored,      // the sender takes no notice of the credit it was given
  kClaimAfterSend,     // a claim on spooled batches reaches the disk only after they were sent
};

struct BreakName {
  Break rule;
  std::string_view name;
};
inline constexpr std::array<BreakName, 6> kBreaks = {{
    {Break::kAckBeforeCommit, "ack-before-commit"},
    {Break::kMarkBeforeSamples, "mark-before-samples"},
    {Break::kDuplicateCounted, "duplicate-counted"},
    {Break::kIdsReused, "ids-reused"},
    {Break::kCreditIgnored, "credit-ignored"},
    {Break::kClaimAfterSend, "claim-after-send"},
}};

}  // namespace tributary::sim
