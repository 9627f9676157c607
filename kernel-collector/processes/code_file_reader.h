#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel-collector/processes/code_file.h"

namespace tributary {

struct OpenedFile {
  std::unique_ptr<ElfFile> file;
  ExecutableId id;
};

// Finds and opens the file of a mapping. Tries every path that may still lead to the file: /proc/PID/map_files (which
// also leads to deleted files), and the mapping's path below the root directory of the process, of process 1, and of
// this process. Such a path may lead to another file, because processes can choose paths and replace files. So only a
// regular file is accepted, and only if its build-id matches `key`, or its inode if `key` has no build-id. Thread-safe;
// reads from disk. NotFound if no location leads to the file; the message is about the last path that was tried.
absl::StatusOr<OpenedFile> OpenCodeFile(const std::string& proc_root, const FileKey& key,
                                        const std::vector<FileLocation>& locations);
// Does the same, but compares the opened file's identity with `id`, which may be of any kind.
absl::StatusOr<std::unique_ptr<ElfFile>> OpenIdentified(const std::string& proc_root, const ExecutableId& id,
                                                        const std::vector<FileLocation>& locations);

// The vdso of this process: code that the kernel maps into every process, and that is in no file.
struct OwnVdso {
  std::string_view bytes;  // valid as long as the process runs
  ExecutableId id;
  std::vector<ElfSegment> segments;
};
absl::StatusOr<OwnVdso> ReadOwnVdso();

}  // namespace tributary
