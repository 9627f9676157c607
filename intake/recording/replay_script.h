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

// A recording cut into steps, to be sent again as a new session. Each step is one batch, with the definitions that go
// ahead of it. The recording is checked once, when it is loaded. It takes 96 bytes of memory per step; the frames stay
// in the file. The accounting of the recording is not used: a replay counts the samples that it sends as captured, and
// none as lost.
class ReplayScript {
 public:
  struct Step {
    uint64_t offset = 0, bytes = 0;  // of its frames in the file
    SampleCounts samples_before;     // of the steps before this step; a row of count n is n samples
    SampleCounts samples;
    int64_t at_ns = 0;              // closing time, relative to the first step's
    uint32_t generation = 0;        // index of the generation in the recording, from 0
    uint32_t generation_begin = 0;  // the first step of that generation, or of the generation that it continues
  };
  // How a step is sent this time.
  struct Parameters {
    uint64_t sequence = 0;
    uint32_t generation = 0;
    SampleCounts captured;
    UnixNs closed;  // the new closing time; the times of the samples move with it
  };

  // InvalidArgument if the file is not a recording, or has no batch. If the file ends within a frame, the frames before
  // are used, and `torn` holds the error.
  static absl::StatusOr<ReplayScript> Load(const std::string& path);

  const SessionInfo& session() const { return session_; }
  const std::vector<Step>& steps() const { return steps_; }
  SampleCounts samples() const { return steps_.back().samples_before + steps_.back().samples; }
  uint32_t generations() const { return steps_.back().generation + 1; }
  int64_t duration_ns() const;  // of one pass
  const absl::Status& torn() const { return torn_; }
  const std::vector<Entity>& entities() const { return entities_; }

  // Returns the frames of a step, ready for the wire. An error if the file has changed since it was loaded.
  absl::StatusOr<std::string> Build(size_t step, const Parameters& parameters) const;

 private:
  ReplayScript() = default;
  absl::Status AddFrames(RecordingReader& reader);
  absl::Status AddMetadata(const Frame& frame);

  std::string path_;
  Fd file_;
  SessionInfo session_;
  std::vector<Step> steps_;
  std::vector<Entity> entities_;
  std::vector<SampleTypeDefinition> types_;  // of all batches: totals contain types of earlier batches too
  absl::Status torn_;
};

}  // namespace tributary::intake
