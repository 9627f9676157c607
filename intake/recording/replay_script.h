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

// A recording, divided into steps, to be sent again as a new session. Each step is one batch, with the Definitions
// messages before it. The recording is checked once, when it is loaded. A ReplayScript needs 96 bytes of memory per
// step. The frames stay in the file. The recorded numbers of captured and lost samples are not used: the replay counts
// the samples that it sends as captured, and no samples as lost.
class ReplayScript {
 public:
  struct Step {
    uint64_t offset = 0, bytes = 0;  // position and size of its frames in the file
    SampleCounts samples_before;     // in all steps before; a sample with count n counts as n samples
    SampleCounts samples;            // and process events
    int64_t at_ns = 0;               // when the batch was closed, relative to the first step
    uint32_t generation = 0;         // index of the generation in the recording, from 0
    uint32_t generation_begin = 0;   // the first step of the generation, or of the earlier generation that it continues
  };
  // The values with which a step is sent.
  struct Parameters {
    uint64_t sequence = 0;
    uint32_t generation = 0;
    bool with_events = true;  // false: the reducer cannot store process events
    SampleCounts captured;
    UnixNs closed;  // the new closing time of the batch; the sample times change by the same amount
  };

  // InvalidArgument if the file is not a recording, or has no batch. If the file ends within a frame, the frames before
  // it are used, and torn() returns the error.
  static absl::StatusOr<ReplayScript> Load(const std::string& path);

  const SessionInfo& session() const { return session_; }
  const std::vector<Step>& steps() const { return steps_; }
  SampleCounts samples() const { return steps_.back().samples_before + steps_.back().samples; }
  uint32_t generations() const { return steps_.back().generation + 1; }
  int64_t duration_ns() const;  // of the whole recording at its recorded speed
  const absl::Status& torn() const { return torn_; }
  const std::vector<Entity>& entities() const { return entities_; }

  // Returns the frames of a step, as they are sent. Returns an error if the file was changed after Load so that these
  // frames cannot be read any more.
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
  std::vector<SampleTypeDefinition> types_;  // of all batches, because totals contain types of earlier batches
  absl::Status torn_;
};

}  // namespace tributary::intake
