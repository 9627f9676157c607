#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel-collector/processes/code_file.h"

namespace tributary {

// Finds and opens the file behind a mapping. Tries every place where the file may still be reachable: a mapping of the
// file (map_files, which also reaches deleted files), the path inside a process's root, the path on the host. Paths may
// lie and files may have been replaced. So the opened file is always a regular file, and its build-id, or else its
// inode, matches the request. Any thread; reads from disk.
struct OpenedFile {
  std::unique_ptr<ElfFile> file;
  ExecutableId id;
};
// NotFound if no location leads to the file; the message is that of the last try.
absl::StatusOr<OpenedFile> OpenCodeFile(const std::string& proc_root, const FileKey& key,
                                        const std::vector<FileLocation>& locations);
// Does the same for a file with a known identity of any kind, and returns the ELF file. Never returns a file with
// another identity.
absl::StatusOr<std::unique_ptr<ElfFile>> OpenIdentified(const std::string& proc_root, const ExecutableId& id,
                                                        const std::vector<FileLocation>& locations);

// The bytes of this process's vdso, and its identity. The vdso belongs to the kernel and is in no file.
struct OwnVdso {
  std::string_view bytes;  // valid as long as the process runs
  ExecutableId id;
  std::vector<ElfSegment> segments;
};
absl::StatusOr<OwnVdso> ReadOwnVdso();

}  // namespace tributary
