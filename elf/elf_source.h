#pragma once

#include <string>
#include <string_view>

#include "elf/elf_file.h"

namespace tributary {

// The source of an ElfFile's bytes: a file, which is read by pread, or memory, which must outlive the ElfFile.
class ElfFile::Source {
 public:
  explicit Source(Fd fd) : fd_(std::move(fd)) {}
  explicit Source(std::string_view memory) : memory_(memory) {}

  // Reads all bytes of [offset, offset + size), or returns an error: the file can become shorter after its size was
  // read.
  absl::Status Read(uint64_t offset, size_t size, char* out) const;
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) const;
  int descriptor() const { return fd_.get(); }

 private:
  Fd fd_;
  std::string_view memory_;  // used if fd_ is not valid
};

}  // namespace tributary
