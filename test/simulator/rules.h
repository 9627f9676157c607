#pragma once

#include <array>
#include <string_view>

namespace tributary::sim {

// A rule of the protocol that a run breaks on request, to check that the simulator notices it.
enum class Break {
  kNone,
  kAckBeforeCommit,    // the reducer acknowledges batches that are only queued
  kMarkBeforeSamples,  // the high-water mark becomes durable in a transaction of its own, before the samples
  kDuplicateCounted,   // a session's mark is reported before its queued batches are durable; batches that are then sent
                       // twice are stored twice
  kIdsReused,          // ids of a new dictionary are looked up in the old dictionary
  kCreditIgnored,      // the sender ignores its credit, the limit of unacknowledged bytes
  kClaimAfterSend,     // a claim (docs/spool.md) reaches the disk only after its batches were sent
  kEventsTwice,        // process events of a batch that is sent twice are stored twice
  kSumCountsOnce,      // a sum of process events is counted as one event
  kExportRequestUnsaved,  // an exporter saves only its cursor before a request, not the request
  kExportCursorAhead,     // an exporter saves the end of a request as its cursor before it sends the request
  kEventsToEarlier,       // process events are sent to a reducer that cannot store them
};

struct BreakName {
  Break rule;
  std::string_view name;
};
inline constexpr std::array<BreakName, 11> kBreaks = {{
    {Break::kAckBeforeCommit, "ack-before-commit"},
    {Break::kMarkBeforeSamples, "mark-before-samples"},
    {Break::kDuplicateCounted, "duplicate-counted"},
    {Break::kIdsReused, "ids-reused"},
    {Break::kCreditIgnored, "credit-ignored"},
    {Break::kClaimAfterSend, "claim-after-send"},
    {Break::kEventsTwice, "events-twice"},
    {Break::kSumCountsOnce, "sum-counts-once"},
    {Break::kExportRequestUnsaved, "export-request-unsaved"},
    {Break::kExportCursorAhead, "export-cursor-ahead"},
    {Break::kEventsToEarlier, "events-to-earlier"},
}};

}  // namespace tributary::sim
