#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel-collector/processes/code_file.h"

namespace tributary {

// Finds and opens the file behind a mapping, wherever it still can be reached: through a mapping of it (map_files,
// which also reaches deleted files), at its path inside a process's root, at its path on the host. Paths may lie and
// files may have been replaced: what is opened is regular, and is the file asked for by build-id, or else by inode. Any
// thread; reads disk.
struct OpenedFile {
  std::unique_ptr<ElfFile> file;
  ExecutableId id;
};
// NotFound: no location leads to it; the message is that of the last try.
absl::StatusOr<OpenedFile> OpenCodeFile(const std::string& proc_root, const FileKey& key,
                                        const std::vector<FileLocation>& locations);
// Same, for a file whose identity of any kind is known: only a file with that identity is returned.
absl::StatusOr<std::unique_ptr<ElfFile>> OpenIdentified(const std::string& proc_root, const ExecutableId& id,
                                                        const std::vector<FileLocation>& locations);

// The bytes of the vdso that this process was given, and its identity: the kernel's own, no file has it.
struct OwnVdso {
  std::string_view bytes;  // lives as long as the process
  ExecutableId id;
  std::vector<ElfSegment> segments;
};
absl::StatusOr<OwnVdso> ReadOwnVdso();

}  // namespace tributary
