#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_inventory.h"
#include "intake/spool/spool_storage.h"
#include "intake/spool/spool_writer.h"

namespace tributary::intake {

// Appends batches to the open segment, which is the one that is being written. Begins and closes segments. Drops the
// oldest segments if the spool is full.
class SpoolAppender {
 public:
  // `session` describes this process. All borrowed objects must outlive the appender.
  SpoolAppender(const SpoolOptions& options, SpoolInventory& inventory, SpoolStorage& storage,
                const SessionInfo& session, const Clock& clock);
  ~SpoolAppender();  // closes the open segment

  // See Spool::Append.
  absl::Status Append(const Batch& batch, const std::optional<SpoolClaim>& claim);
  // Closes the segment `id` if it is open. Afterwards the segment is on disk and nothing is appended to it.
  void Close(SegmentId id);
  // Stops writing to the segment `id` if it is open. The caller then removes the file.
  void Forget(SegmentId id);
  void CloseOld();  // closes the open segment if it has reached segment_age_ns

 private:
  // The segment that is being written. After its first batch was written, it is the last segment of the inventory.
  struct Open {
    SegmentId id = 0;
    std::optional<SpoolClaim> claim;
    uint32_t version = kSegmentVersionSamples;
    SegmentWriter writer;
    MonotonicNs since;
    uint32_t batches = 0;
    Accounting totals;  // the claim's base plus the amounts that the batches added

    // Returns true if a batch with this claim may be appended to this segment, and if the segment has this version.
    bool Continues(const std::optional<SpoolClaim>& next, uint32_t next_version) const;
  };

  std::string Encode(const Batch& batch, const std::optional<SpoolClaim>& claim);
  absl::Status Write(const std::string& record, const Batch& batch);
  absl::Status MakeRoom(uint64_t bytes_needed);
  uint64_t DroppableBytes() const;
  bool CanHold(uint64_t more) const;
  bool IsOpen(SegmentId id) const { return open_ && open_->id == id; }
  bool IsOld() const { return clock_.Monotonic().value - open_->since.value >= options_.segment_age_ns; }
  void Close();
  void Abandon();

  SpoolOptions options_;
  SpoolInventory& inventory_;
  SpoolStorage& storage_;
  const SessionInfo& session_;
  const Clock& clock_;
  // Becomes kSegmentVersionEvents with the first process event, and stays so: a segment that ends early wastes space.
  uint32_t version_ = kSegmentVersionSamples;
  std::optional<Open> open_;
};

}  // namespace tributary::intake
