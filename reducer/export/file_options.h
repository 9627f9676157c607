#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"

namespace tributary {

// The settings of an export to files: --export file://DIR.
struct FileOptions {
  enum class Format { kFolded, kOtlpJson };
  std::string directory;                        // absolute
  std::string_view attribute = "service.name";  // each value of this attribute of resources gets its own files
  Format format = Format::kFolded;
  int64_t rotate_bytes = 16 << 20;              // a larger file is finished…
  int64_t rotate_after_ns = 60 * kNsPerMinute;  // …and an older one
  int64_t keep = 24;                            // finished files of each name
  // Not a parameter of the URL: names and sample types with files in the directory.
  size_t series_max = 4'096;
};

// Sets the option that the parameter `key` of a URL means. Returns "", or what is wrong.
std::string_view SetFileOption(std::string_view key, std::string_view value, FileOptions* out);

// Returns the directory of "file://DIR" from DIR, which is percent-encoded. Different spellings of a path, such as with
// a slash at the end, have the same result. InvalidArgument: the path is not absolute, is too long, or contains a zero
// byte.
absl::StatusOr<std::string> ParseFileDirectory(std::string_view encoded);

}  // namespace tributary
