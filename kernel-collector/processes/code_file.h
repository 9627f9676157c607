#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "base/metrics.h"
#include "base/types.h"
#include "elf/elf_file.h"
#include "kernel-collector/processes/runtime_binary.h"
#include "profile/dictionary.h"
#include "profile/executable_id.h"

namespace tributary {

// Identifies a mapped file before the file has been read: by its build-id if the kernel reports one, else by device and
// inode.
struct FileKey {
  ExecutableId build_id;
  uint32_t device_major = 0, device_minor = 0;
  uint64_t inode = 0;

  bool known() const { return build_id.known() || inode != 0; }
  friend bool operator==(const FileKey&, const FileKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const FileKey& k) {
    return H::combine(std::move(h), k.build_id, k.device_major, k.device_minor, k.inode);
  }
};

// A way to open a file: a process that maps or has mapped the file, the range of the mapping, and the file's path as
// the process sees it.
struct FileLocation {
  Pid pid;
  uint64_t start = 0, end = 0;
  std::string path;
};

// A file that is mapped as code. All mappings with the same FileKey share this object. When a sample first has an
// address in the file, a worker reads the file's identity and segments. The identity is known earlier if the kernel
// reported the build-id. Loop thread only.
struct CodeFile {
  static constexpr size_t kLocationsMax = 4;

  enum class State {
    kUnread,   // not requested yet, or there is a new place to try
    kReading,  // a worker is reading the file
    kReady,
    kFailed,  // unreadable at every known place
  };

  void AddLocation(FileLocation location);

  FileKey key;
  State state = State::kUnread;
  ExecutableId id;  // key.build_id, or the identity from the file after it was read
  std::string path;
  std::vector<ElfSegment> segments;
  RuntimeBinaryPtr runtime;             // null: the file has no language runtime
  std::vector<FileLocation> locations;  // the newest last
  std::string_view memory;              // the bytes, if they are in no file: the vdso's
  std::string only_function;            // the only known name of code that is in no file: see MakeNamedCode

  uint32_t unwind_table = 0;  // the file's number in UnwindTables; 0: none yet

  // `interned` is the file's number in the dictionary of generation `interned_generation`. So the batcher need not look
  // up the id for each frame.
  uint64_t interned_generation = 0;
  ExecutableRef interned;
};
using CodeFilePtr = std::shared_ptr<CodeFile>;

// Returns a CodeFile for code that is in no file. Only the name of such code is known. Its id is a hash of `path`.
CodeFilePtr MakeNamedCode(std::string path, std::string function);

// Contains the mapped executable files, and the locations of the files whose identity is known. When the table is full,
// it drops the files that no mapping uses any more. If it is still full, it does not add the new file: frames in this
// file stay unknown, and the file is counted. Loop thread only.
class CodeFileTable {
 public:
  static constexpr size_t kFilesMax = 16'384;
  static constexpr size_t kSourcesMax = 16'384;

  explicit CodeFileTable(Metrics& metrics);

  // Returns the CodeFile of `key`; creates it if `key` is new. Returns null if the key identifies no file, or if the
  // table is full. An entry without a build-id that no mapping uses any more is replaced by a new one, because another
  // file may have the inode now.
  CodeFilePtr Intern(const FileKey& key, FileLocation location);
  // The vdso of this kernel. It is in no file, and is the same in every 64-bit process.
  const CodeFilePtr& vdso() const { return vdso_; }
  void SetVdso(CodeFilePtr vdso) { vdso_ = std::move(vdso); }

  // Returns the locations where the symbol server can read the file with this identity. Returns an empty list if the
  // identity was never seen, or if its entry was evicted (above kSourcesMax).
  std::vector<FileLocation> LocationsOf(const ExecutableId& id) const;
  // Stores the executable's locations for LocationsOf. Call it when the executable's id has become known.
  void Identified(const CodeFile& executable);

  size_t size() const { return files_.size(); }

 private:
  void DropUnused();

  absl::flat_hash_map<FileKey, CodeFilePtr> files_;
  absl::flat_hash_map<ExecutableId, std::vector<FileLocation>> sources_;
  CodeFilePtr vdso_;
  Counter& refused_;
};

}  // namespace tributary
