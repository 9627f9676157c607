#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "k8s-collector/watch/resource_kind.h"

// Recorded answers of an API server: a directory with one file per kind ("pods.jsonl"). Each line of a file is a JSON
// object of one event (docs/k8s-collector.md).

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
// Returns the kind of objects that a request asks for, from its path.
std::optional<ResourceKind> KindOfTarget(std::string_view target);

// Returns one line, including "\n".
std::string EncodeStep(const RecordedStep& step);
// InvalidArgument if the line has another form.
absl::StatusOr<RecordedStep> DecodeStep(std::string_view line);

}  // namespace tributary
