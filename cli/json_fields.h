#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/status.h"
#include "cli/api.h"

// Reads the fields of a reducer's answer. Only the files that parse answers include this header, because simdjson's
// header is large. A field that is missing, or of another type, is 0 or "".

namespace tributary::cli {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

inline absl::Status Bad(std::string_view problem) {
  return Error(absl::StatusCode::kInvalidArgument,
               std::string("the answer is not from a reducer, or the reducer's version does not fit this version of "
                           "tributary: ")
                   .append(problem));
}

inline uint64_t GetNumber(const object& from, std::string_view key) {
  uint64_t value = 0;
  if (from.at_key(key).get(value) == simdjson::SUCCESS) return value;
  double real = 0;
  return from.at_key(key).get(real) == simdjson::SUCCESS && real > 0 && real < 1e18 ? static_cast<uint64_t>(real) : 0;
}

inline double GetReal(const object& from, std::string_view key) {
  double value = 0;
  return from.at_key(key).get(value) == simdjson::SUCCESS ? value : 0;
}

inline int64_t GetSigned(const object& from, std::string_view key) {
  int64_t value = 0;
  return from.at_key(key).get(value) == simdjson::SUCCESS ? value : 0;
}

inline std::string GetString(const object& from, std::string_view key) {
  std::string_view value;
  return from.at_key(key).get(value) == simdjson::SUCCESS ? std::string(value) : "";
}

inline bool GetBool(const object& from, std::string_view key) {
  bool value = false;
  return from.at_key(key).get(value) == simdjson::SUCCESS && value;
}

inline Counts GetCounts(const object& from, std::string_view key) {
  Counts counts;
  object entries;
  if (from.at_key(key).get(entries) != simdjson::SUCCESS) return counts;
  for (auto [name, value] : entries) {
    uint64_t number = 0;
    if (value.get(number) == simdjson::SUCCESS) counts.emplace_back(name, number);
  }
  return counts;
}

// A parsed text, and the parser that owns the data of its elements.
struct Document {
  simdjson::dom::parser parser;
  object root;

  absl::Status Parse(std::string_view json) {
    if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return Bad("not a JSON object");
    return absl::OkStatus();
  }
};

template <typename Take>
absl::Status ForEachObject(const object& from, std::string_view key, Take take) {
  array items;
  if (from.at_key(key).get(items) != simdjson::SUCCESS) return Bad(std::string("no list ").append(key));
  for (element item : items) {
    object fields;
    if (item.get(fields) != simdjson::SUCCESS) return Bad(std::string("invalid entry in list ").append(key));
    take(fields);
  }
  return absl::OkStatus();
}

}  // namespace tributary::cli
