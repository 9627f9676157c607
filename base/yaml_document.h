#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// A node of a YAML document, with its place in the text.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0, column = 0;  // of the value, from 1
  std::string text;          // of a scalar
  std::string key;           // of a member of a map: the member's key
  int key_line = 0, key_column = 0;
  std::vector<YamlNode> children;  // the elements of a sequence, or the members of a map

  bool IsNull() const { return kind == Kind::kNull; }
  bool IsScalar() const { return kind == Kind::kScalar; }
  bool IsSequence() const { return kind == Kind::kSequence; }
  bool IsMap() const { return kind == Kind::kMap; }
  const YamlNode* Find(std::string_view member) const;  // nullptr if there is no such member
};

// Aliases count as copies of the nodes that they name, so a small text cannot become a large document.
struct YamlLimits {
  size_t bytes_max = 256 << 10;  // of the text, and of all keys and scalars of the document
  size_t depth_max = 32;         // of nested maps and sequences
  size_t nodes_max = 20'000;     // of the document, with copies
};

// Parses the first document of a YAML text. Files with options are small. So this function refuses what only a hostile
// file has, before it needs much memory or stack: see YamlLimits. It also refuses NUL bytes, text that is not UTF-8,
// two equal keys in a map, keys that are not scalars, and an alias inside its own anchor. Returns InvalidArgument; the
// message begins with "line L, column C: ", except for a text that is too long. A program
// that reads the worst text with the default limits needs 72 MiB in all. test/e2e/distribution_test.py checks that
// kernel-collector stays below 128 MiB.
absl::StatusOr<YamlNode> ParseYaml(std::string_view text, const YamlLimits& limits = {});

// Reads a file, which may be a pipe. Returns NotFound if it cannot be read. Of a text that is too long, returns one
// byte more than ParseYaml accepts.
absl::StatusOr<std::string> ReadYamlText(const std::string& path, const YamlLimits& limits = {});

// Returns "line L, column C: MESSAGE", for the place of the value.
std::string AtValue(const YamlNode& node, std::string_view message);

}  // namespace tributary
