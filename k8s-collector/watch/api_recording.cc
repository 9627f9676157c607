#include "k8s-collector/watch/api_recording.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tributary {
std::string RecordingFileName(ResourceKind kind) { return fmt::format("{}.jsonl", InfoOf(kind).plural); }

std::optional<ResourceKind> KindOfTarget(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  for (const ResourceInfo& info : AllResources()) {
    if (info.path == path) return info.kind;
  }
  return std::nullopt;
}

std::string EncodeStep(const RecordedStep& step) {
  JsonWriter json;
  json.BeginObject();
  json.Field("t", step.at.value / kNsPerMs);
  switch (step.type) {
    case RecordedStep::Type::kRequest:
      json.Field("request", step.text);
      break;
    case RecordedStep::Type::kAnswer:
      json.Field("status", step.status);
      if (step.retry_after_s != 0) json.Field("retry_after_s", step.retry_after_s);
      break;
    case RecordedStep::Type::kBytes:
      if (IsUtf8(step.text)) {
        json.Field("body", step.text);
      } else {  // the network may cut within a character
        json.Field("body_hex", ToHex({reinterpret_cast<const uint8_t*>(step.text.data()), step.text.size()}));
      }
      break;
    case RecordedStep::Type::kEnd:
      json.Field("end", step.text);
      break;
  }
  json.EndObject();
  return std::move(json).Take() + '\n';
}

absl::StatusOr<RecordedStep> DecodeStep(std::string_view line) {
  simdjson::dom::parser parser;
  simdjson::dom::object from;
  int64_t time_ms = 0;
  if (parser.parse(line.data(), line.size()).get(from) != simdjson::SUCCESS ||
      from.at_key("t").get(time_ms) != simdjson::SUCCESS || time_ms < 0 || time_ms > INT64_MAX / kNsPerMs) {
    return Error(absl::StatusCode::kInvalidArgument, "not a line of a recording");
  }
  RecordedStep step{.at = UnixNs{time_ms * kNsPerMs}};
  std::string_view text;
  int64_t status = 0;
  if (from.at_key("request").get(text) == simdjson::SUCCESS) {
    step.type = RecordedStep::Type::kRequest;
    step.text = text;
  } else if (from.at_key("status").get(status) == simdjson::SUCCESS && status > 0 && status < 1000) {
    step.type = RecordedStep::Type::kAnswer;
    step.status = static_cast<int>(status);
    if (from.at_key("retry_after_s").get(step.retry_after_s) != simdjson::SUCCESS) step.retry_after_s = 0;
  } else if (from.at_key("body").get(text) == simdjson::SUCCESS) {
    step.type = RecordedStep::Type::kBytes;
    step.text = text;
  } else if (from.at_key("body_hex").get(text) == simdjson::SUCCESS) {
    step.type = RecordedStep::Type::kBytes;
    std::optional<std::string> bytes = FromHex(text);
    if (!bytes) return Error(absl::StatusCode::kInvalidArgument, "not a line of a recording");
    step.text = *std::move(bytes);
  } else if (from.at_key("end").get(text) == simdjson::SUCCESS) {
    step.type = RecordedStep::Type::kEnd;
    step.text = text;
  } else {
    return Error(absl::StatusCode::kInvalidArgument, "not a line of a recording");
  }
  return step;
}

}  // namespace tributary
