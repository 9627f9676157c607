#include "k8s-collector/watch/json_splitter.h"

#include <fmt/format.h>

#include <array>

#include "base/log.h"
#include "base/status.h"
#include "base/trim.h"

namespace tributary {
namespace {

// A larger buffer, made by one huge object, is freed.
constexpr size_t kKeepBytes = 256u << 10;
constexpr size_t kShownBytes = 40;

enum Meaning : uint8_t { kNothing, kQuote, kBackslash, kBracket };
constexpr std::array<Meaning, 256> kMeanings = [] {
  std::array<Meaning, 256> meanings{};
  meanings['"'] = kQuote;
  meanings['\\'] = kBackslash;
  for (const char c : {'{', '}', '[', ']'}) meanings[static_cast<unsigned char>(c)] = kBracket;
  return meanings;
}();
Meaning MeaningOf(char c) { return kMeanings[static_cast<unsigned char>(c)]; }

constexpr std::string_view kSpaces = " \n\r\t";
bool IsSpace(char c) { return kSpaces.find(c) != kSpaces.npos; }

}  // namespace

absl::Status JsonSplitter::Feed(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    if (!in_object_) {
      if (absl::Status status = FeedOutside(bytes.front()); !status.ok()) {
        return WithContext(status, EscapeForDisplay(bytes.substr(0, kShownBytes)));
      }
      bytes.remove_prefix(1);
      continue;
    }
    const size_t passed = PassObject(bytes);
    KeepObject(bytes.substr(0, passed));
    bytes.remove_prefix(passed);
    if (in_object_) return absl::OkStatus();
    if (!skipping_ && !take(object_)) return absl::OkStatus();
    object_.clear();
    if (object_.capacity() > kKeepBytes) object_.shrink_to_fit();
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
    if (!in_items_ || c != ']') return Error(absl::StatusCode::kInvalidArgument, "not a JSON object");
  }
  if (shape_ == Shape::kObjects) return Error(absl::StatusCode::kInvalidArgument, "not a JSON object");
  if (depth_ == 0 && (begun_ ? !IsSpace(c) : c != '{' && !IsSpace(c))) {
    return Error(absl::StatusCode::kInvalidArgument, begun_ ? "more than one JSON object" : "not a JSON object");
  }
  if (rest_.size() >= kRestBytesMax)
    return Error(absl::StatusCode::kInvalidArgument, "too much data before or after the list of items");
  KeepRest(c);
  return absl::OkStatus();
}

// Returns false if `c` is part of a string, or a quote.
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

// Returns true if the next value is that of the key "items".
bool JsonSplitter::at_items() const {
  constexpr std::string_view kKey = "\"items\"";
  std::string_view before = TrimEnd(rest_, kSpaces);
  if (!before.ends_with(':')) return false;
  before = TrimEnd(before.substr(0, before.size() - 1), kSpaces);
  if (!before.ends_with(kKey)) return false;
  before.remove_suffix(kKey.size());
  return !before.ends_with('\\');
}

// Returns the number of bytes up to the end of the current object, or of `bytes`. Most bytes have no meaning and are
// passed in runs.
size_t JsonSplitter::PassObject(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size() && in_object_) {
    if (!escaped_) {
      const Meaning ignored = in_string_ ? kBracket : kBackslash;
      while (at < bytes.size() && (MeaningOf(bytes[at]) == kNothing || MeaningOf(bytes[at]) == ignored)) ++at;
      if (at == bytes.size()) break;
    }
    const char c = bytes[at++];
    if (!PassString(c)) continue;
    if (c == '{' || c == '[') {
      ++depth_;
    } else {
      in_object_ = --depth_ != outside();
    }
  }
  return at;
}

void JsonSplitter::KeepObject(std::string_view part) {
  if (skipping_) return;
  if (part.size() > object_bytes_max_ - object_.size()) {
    skipping_ = true;
    ++too_large_;
    object_.clear();
    object_.shrink_to_fit();
    return;
  }
  object_ += part;
}

}  // namespace tributary
