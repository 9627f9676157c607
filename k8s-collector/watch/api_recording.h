#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "k8s-collector/watch/resource_kind.h"

// A recording of an API server's answers is a directory with one file per kind of objects ("pods.jsonl"). Each line of
// a file is a JSON object that describes one step (docs/k8s-collector.md).

namespace tributary {

struct RecordedStep {
  enum class Type { kRequest, kAnswer, kBytes, kEnd };
  UnixNs at;
  Type type = Type::kRequest;
  std::string text;  // a request's target, the bytes, or the error of an end ("": complete)
  int status = 0;    // of an answer
  int64_t retry_after_s = 0;
};

std::string RecordingFileName(ResourceKind kind);
// Returns the kind of objects that a request with this target lists or watches. Returns nullopt for any other target.
std::optional<ResourceKind> KindOfTarget(std::string_view target);

// Returns the line of the file for `step`, including "\n".
std::string EncodeStep(const RecordedStep& step);
// Decodes a line of the file, without "\n". Returns InvalidArgument if the line is malformed.
absl::StatusOr<RecordedStep> DecodeStep(std::string_view line);

}  // namespace tributary
