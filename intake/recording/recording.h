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
  MetadataFeed* metadata = nullptr;  // not null: its changes are recorded before each batch; must outlive the sink
};

// Writes every batch to a file, then passes the batch to the next sink. The file contains the frames that the client of
// an intake session would send: Hello, then the frames with metadata, definitions and batches. `tributary inspect` and
// `tributary replay` read the file (docs/recording.md). The file has its own dictionary generations and sequence
// numbers, so reconnects do not affect it. Its last frame is complete, unless the process or the machine stopped during
// a write.
//
// Recording does not prevent sending. If the file reaches `bytes_max` or cannot be written, recording ends with one log
// message. Later batches are only passed on, and their samples and events are counted as not recorded. Recording costs
// one more encoding and one write() per batch. Use it only on the loop's thread.
class RecordingSink : public BatchSink {
 public:
  // Creates the file, accessible only to its owner. If the file exists, replaces its content and keeps its permissions.
  // Returns an error if the file cannot be created. `next`, `clock` and `metrics` must outlive this object.
  static absl::StatusOr<std::unique_ptr<RecordingSink>> Open(RecordingOptions options, const SessionInfo& session,
                                                             BatchSink& next, const Clock& clock, Metrics& metrics);

  absl::Status Take(Batch batch) override;

  bool recording() const { return file_.valid(); }

 private:
  RecordingSink(RecordingOptions options, Fd file, BatchSink& next, Metrics& metrics);
  void Record(Batch& batch);
  void CountUnrecorded(const SampleCounts& records);
  void RecordMetadata();
  // Writes to the end of the file, if the file then stays within bytes_max. Returns false if recording has ended.
  bool Append(std::string_view bytes);
  // Writes all bytes. After an error, removes the bytes that were written, if that is possible.
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
  Counter& recorded_events_;
  Counter& unrecorded_events_;
};

}  // namespace tributary::intake
