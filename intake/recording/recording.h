#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "intake/codec/batch_encoder.h"
#include "intake/metadata/metadata_feed.h"
#include "profile/batch.h"

namespace tributary::intake {

struct RecordingOptions {
  std::string path;
  uint64_t bytes_max = 1u << 30;
  MetadataFeed* metadata = nullptr;  // its changes are recorded too, before each batch; must outlive the sink
};

// Writes every batch to a file, then passes the batch to the next sink. The file contains a session as it would go over
// the wire: a Hello, then the other intake frames, one after the other. `tributary inspect` and `tributary replay` read
// it (docs/recording.md). The file has its own dictionary and sequence numbers, so it does not depend on connections
// and reconnects. The file always ends at the end of a frame, unless the process or the machine died in the middle of a
// write.
//
// Recording never disturbs sending. When the file reaches its cap or cannot be written, recording ends with one log
// line, and batches that are not in the file are counted. Costs one more encoding and one write() a batch. On the
// loop's thread.
class RecordingSink : public BatchSink {
 public:
  // Creates the file, readable only by its owner, and replaces an existing file. Returns an error if the file cannot be
  // created. `next`, `clock` and `metrics` must outlive this object.
  static absl::StatusOr<std::unique_ptr<RecordingSink>> Open(RecordingOptions options, const SessionInfo& session,
                                                             BatchSink& next, const Clock& clock, Metrics& metrics);

  absl::Status Take(Batch batch) override;

  bool recording() const { return file_.valid(); }

 private:
  RecordingSink(RecordingOptions options, Fd file, BatchSink& next, Metrics& metrics);
  void Record(Batch& batch);
  void RecordMetadata();
  // Writes at the end of the file, if the cap allows it. Returns false if recording has ended.
  bool Append(std::string_view bytes);
  // Writes all bytes or nothing, as far as the disk allows.
  absl::Status Write(std::string_view bytes);
  void End(const absl::Status& why);

  const RecordingOptions options_;
  Fd file_;  // invalid once recording has ended
  BatchSink& next_;
  uint64_t written_ = 0;
  uint64_t next_sequence_ = 1;
  MetadataFeed::Cursor recorded_metadata_;
  std::shared_ptr<const Dictionary> dictionary_;
  BatchEncoder encoder_{0};
  Counter& recorded_bytes_;
  Counter& recorded_;
  Counter& unrecorded_;
};

}  // namespace tributary::intake
