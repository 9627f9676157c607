#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "intake/recording/recording_reader.h"
#include "intake/wire/frame.h"
#include "profile/batch.h"
#include "profile/metadata.h"

namespace tributary::intake {

// A recording cut into steps, to be sent again as a session of today: one step a batch, with the definitions that
// travel ahead of it. Everything is checked once, when it is loaded; what is kept is 104 bytes a step, the frames
// stay in the file. Accounting is made anew: a replay captures what it sends and loses nothing of it.
class ReplayScript {
 public:
  struct Step {
    uint64_t offset = 0, bytes = 0;  // of its frames in the file
    SampleCounts samples_before;     // of the steps before it; a row of count n is n samples
    SampleCounts samples;
    int64_t at_ns = 0;              // closed that long after the first one
    uint32_t generation = 0;        // which one of the recording's, from 0
    uint32_t generation_begin = 0;  // the first step of that generation, or of the one that it continues
  };
  // How a step is told this time.
  struct Telling {
    uint64_t sequence = 0;
    uint32_t generation = 0;
    SampleCounts captured;
    UnixNs closed;  // samples keep their distance to it
  };

  // InvalidArgument: not a recording, or nothing in it. A file that ends within a frame is used up to there, and
  // `torn` says so.
  static absl::StatusOr<ReplayScript> Load(const std::string& path);

  const SessionInfo& session() const { return session_; }
  const std::vector<Step>& steps() const { return steps_; }
  SampleCounts samples() const { return steps_.back().samples_before + steps_.back().samples; }
  uint32_t generations() const { return steps_.back().generation + 1; }
  int64_t duration_ns() const;  // of one pass
  const absl::Status& torn() const { return torn_; }
  const std::vector<Entity>& entities() const { return entities_; }

  // The frames of a step, ready for the wire. An error: the file has changed since it was loaded.
  absl::StatusOr<std::string> Build(size_t step, const Telling& telling) const;

 private:
  ReplayScript() = default;
  absl::Status AddFrames(RecordingReader& reader);
  absl::Status AddMetadata(const Frame& frame);

  std::string path_;
  Fd file_;
  SessionInfo session_;
  std::vector<Step> steps_;
  std::vector<Entity> entities_;
  std::vector<SampleTypeDefinition> types_;  // that any batch defines: totals have those of earlier batches, too
  absl::Status torn_;
};

}  // namespace tributary::intake
