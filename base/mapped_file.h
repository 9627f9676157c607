#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace tributary {

// The contents of a file, mapped into memory for reading. Only for files that no process makes shorter meanwhile:
// reading a page after the file's new end causes SIGBUS.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  // Maps an open file. `name` is for errors. The caller may close the descriptor afterwards.
  static absl::StatusOr<MappedFile> Map(int fd, const std::string& name);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes_;
};

}  // namespace tributary
