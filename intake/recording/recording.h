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
  MetadataFeed* metadata = nullptr;  // recorded, too: before each batch what is new of it; outlives the sink
};

// Writes every batch to a file before it hands it on: a session as it would go over the wire, for `tributary inspect`
// and `tributary replay` (docs/recording.md). The file is intake frames one after the other, first a Hello, and has a
// dictionary and sequence numbers of its own, so that it stands for itself whatever the connection went through. It
// always ends at a frame's end, unless the process or the machine died in the middle of a write.
//
// Recording never disturbs sending: when the file reaches its cap or cannot be written, it ends with one log line, and
// what is not in it is counted. Costs one more encoding and one write() a batch. On the loop's thread.
class RecordingSink : public BatchSink {
 public:
  // Makes the file, readable by its owner alone, in place of one that is there. An error: the file cannot be made.
  // `next`, `clock` and `metrics` outlive this.
  static absl::StatusOr<std::unique_ptr<RecordingSink>> Open(RecordingOptions options, const SessionInfo& session,
                                                             BatchSink& next, const Clock& clock, Metrics& metrics);

  absl::Status Take(Batch batch) override;

  bool recording() const { return file_.valid(); }

 private:
  RecordingSink(RecordingOptions options, Fd file, BatchSink& next, Metrics& metrics);
  void Record(Batch& batch);
  void RecordMetadata();
  // At the end of the file, if there is room for it. False: recording has ended.
  bool Append(std::string_view bytes);
  // All of it or nothing, as far as the disk allows.
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
