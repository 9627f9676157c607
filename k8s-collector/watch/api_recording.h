#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "k8s-collector/watch/resource_kind.h"

// Recorded answers of an API server: a directory with a file for each kind ("pods.jsonl"), in it a JSON object a line,
// one for each thing that happened (docs/k8s-collector.md).

namespace tributary {

struct RecordedStep {
  enum class What { kRequest, kAnswer, kBytes, kEnd };
  UnixNs at;
  What what = What::kRequest;
  std::string text;  // of a request its target, of bytes themselves, of an end the error: "" = whole
  int status = 0;    // of an answer
  int64_t retry_after_s = 0;
};

std::string RecordingFileName(ResourceKind kind);
// Whose objects a request is for: by its path.
std::optional<ResourceKind> KindOfTarget(std::string_view target);

// One line, "\n" included.
std::string EncodeStep(const RecordedStep& step);
// InvalidArgument: not such a line.
absl::StatusOr<RecordedStep> DecodeStep(std::string_view line);

}  // namespace tributary
