#include "k8s-collector/watch/json_splitter.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

// A buffer that one huge object made is given back.
constexpr size_t kKeepBytes = 256u << 10;
constexpr size_t kShownBytes = 40;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

absl::Status JsonSplitter::Feed(std::string_view bytes, const Take& take) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (in_object_) {
      FeedObject(bytes[i]);
      if (in_object_) continue;
      if (!skipping_ && !take(object_)) return absl::OkStatus();
      object_.clear();
      if (object_.capacity() > kKeepBytes) object_.shrink_to_fit();
      continue;
    }
    if (absl::Status status = FeedOutside(bytes[i]); !status.ok()) {
      return WithContext(status, EscapeForDisplay(bytes.substr(i, kShownBytes)));
    }
  }
  return absl::OkStatus();
}

absl::Status JsonSplitter::FeedOutside(char c) {
  const bool expects_object = depth_ == outside() && (shape_ == Shape::kObjects || in_items_);
  if (expects_object && !in_string_) {
    if (c == '{') {
      begun_ = in_object_ = true;
      skipping_ = false;
      ++depth_;
      object_ = c;
      return absl::OkStatus();
    }
    if (IsSpace(c) || (in_items_ && c == ',')) return absl::OkStatus();
    if (!in_items_ || c != ']') return Error(absl::StatusCode::kInvalidArgument, "no JSON object");
  }
  if (shape_ == Shape::kObjects) return Error(absl::StatusCode::kInvalidArgument, "no JSON object");
  if (depth_ == 0 && (begun_ ? !IsSpace(c) : c != '{' && !IsSpace(c))) {
    return Error(absl::StatusCode::kInvalidArgument, begun_ ? "more than one JSON object" : "no JSON object");
  }
  if (rest_.size() >= kRestBytesMax) return Error(absl::StatusCode::kInvalidArgument, "a list with too much around it");
  KeepRest(c);
  return absl::OkStatus();
}

// False: `c` is of a string, or a quote.
bool JsonSplitter::PassString(char c) {
  if (!in_string_) {
    in_string_ = c == '"';
    return !in_string_;
  }
  in_string_ = escaped_ || c != '"';
  escaped_ = !escaped_ && c == '\\';
  return false;
}

void JsonSplitter::KeepRest(char c) {
  const bool is_structure = PassString(c);
  if (is_structure && (c == '{' || c == '[')) {
    begun_ = true;
    if (c == '[' && depth_ == 1 && at_items()) in_items_ = true;
    ++depth_;
  } else if (is_structure && (c == '}' || c == ']')) {
    --depth_;  // never below 0: at 0 only an opening bracket comes here
    if (depth_ == 1) in_items_ = false;
  }
  rest_ += c;
}

// Whether what comes next is the value of the key "items".
bool JsonSplitter::at_items() const {
  constexpr std::string_view kKey = "\"items\"";
  std::string_view before = rest_;
  auto trim = [&before] {
    while (!before.empty() && IsSpace(before.back())) before.remove_suffix(1);
  };
  trim();
  if (!before.ends_with(':')) return false;
  before.remove_suffix(1);
  trim();
  if (!before.ends_with(kKey)) return false;
  before.remove_suffix(kKey.size());
  return !before.ends_with('\\');
}

void JsonSplitter::FeedObject(char c) {
  const bool is_structure = PassString(c);
  if (is_structure && (c == '{' || c == '[')) {
    ++depth_;
  } else if (is_structure && (c == '}' || c == ']')) {
    in_object_ = --depth_ != outside();
  }
  if (skipping_) return;
  if (object_.size() >= object_bytes_max_) {
    skipping_ = true;
    ++too_large_;
    object_.clear();
    object_.shrink_to_fit();
    return;
  }
  object_ += c;
}

}  // namespace tributary
