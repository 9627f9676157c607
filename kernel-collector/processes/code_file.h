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

// A place where a file can be found: a process that has, or had, the file mapped, and the file's path there.
struct FileLocation {
  Pid pid;
  uint64_t start = 0, end = 0;
  std::string path;
};

// One file that is mapped as code, shared by all of its mappings. A worker reads the identity and the segments when a
// sample first touches the file. The identity is known earlier if the kernel reported the build-id. Loop thread only.
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
  std::vector<FileLocation> locations;  // the newest last
  std::string_view memory;              // the bytes, if they are in no file: the vdso's
  std::string only_function;            // the only known name of code that is in no file: see MakeNamedCode

  uint32_t unwind_table = 0;  // the file's number in UnwindTables; 0: none yet

  // `interned` is the file's number in the dictionary of generation `interned_generation`. The number saves a hash of
  // the id per frame.
  uint64_t interned_generation = 0;
  ExecutableRef interned;
};
using CodeFilePtr = std::shared_ptr<CodeFile>;

// Returns code that is in no file and that has only a known name. Its identity is derived from its path.
CodeFilePtr MakeNamedCode(std::string path, std::string function);

// The mapped executable files, and the places where the files with a known identity were found. When the table is full,
// it drops the files that no mapping uses any more. If it is still full, the new file is not followed: its frames stay
// unknown, and the file is counted. Loop thread only.
class CodeFileTable {
 public:
  static constexpr size_t kFilesMax = 16'384;
  static constexpr size_t kSourcesMax = 16'384;

  explicit CodeFileTable(Metrics& metrics);

  // Returns the file's executable; creates it if it is new. Returns null if the key identifies no file, or if the table
  // is full. If a file has no build-id and no mapping uses it any more, its inode may have been reused. The file then
  // counts as new and is read again.
  CodeFilePtr Intern(const FileKey& key, FileLocation location);
  // This machine's vdso. It is in no file and is the same for every 64-bit process.
  const CodeFilePtr& vdso() const { return vdso_; }
  void SetVdso(CodeFilePtr vdso) { vdso_ = std::move(vdso); }

  // Returns the places where the file with this identity can be read, for the symbol server. Empty if the identity was
  // never seen, or if its entry was evicted (above kSourcesMax).
  std::vector<FileLocation> LocationsOf(const ExecutableId& id) const;
  // Call it when the executable's id has become known.
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
