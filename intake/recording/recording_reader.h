#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "intake/codec/batch_decoder.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"
#include "profile/dictionary.h"

namespace tributary::intake {

struct RecordedFrame {
  uint64_t offset = 0;        // of the frame's header in the file
  uint32_t stored_bytes = 0;  // size of the payload in the file
  Frame frame;
};

// Reads the frames of a recording, in order. Reads 64 KiB at a time. The file may be hostile.
class RecordingReader {
 public:
  static absl::StatusOr<std::unique_ptr<RecordingReader>> Open(const std::string& path);
  // `file`: the open file. `path` is only used in error messages.
  RecordingReader(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  // Returns true and sets `frame`, or returns false at the end of the file. DataLoss if the file ends within a frame,
  // for example because a collector was killed while it wrote the frame. InvalidArgument if the bytes at offset() are
  // not a frame. Then nothing after these bytes can be read. FailedPrecondition if a newer release wrote the file. All
  // error texts contain the path.
  absl::StatusOr<bool> Next(RecordedFrame* frame);

  uint64_t offset() const { return offset_; }  // position after the last complete frame
  const std::string& path() const { return path_; }

 private:
  absl::StatusOr<bool> ReadMore();  // false: end of file
  std::string At(std::string_view what) const;
  absl::Status Refusal(const absl::Status& why) const;
  absl::Status IsOfANewerRelease() const;

  std::string path_;
  Fd file_;
  FrameDecoder decoder_;
  std::string chunk_;
  uint64_t offset_ = 0;
};

// Decodes the messages of a recorded session, and stores the current dictionary.
class RecordedSession {
 public:
  RecordedSession();

  // Decodes a kDefinitions or kBatch frame. Returns an error if the recording is inconsistent.
  absl::StatusOr<IncomingBatch> Take(const Frame& frame);

  const Dictionary& dictionary() const { return *dictionary_; }

 private:
  std::optional<BatchDecoder> decoder_;
  std::shared_ptr<Dictionary> dictionary_;
};

}  // namespace tributary::intake
