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

// What names a mapped file before anybody has read it: its build-id where the kernel tells it, else device and inode.
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

// Where a file can be found: a process that has, or had, it mapped, and its path there.
struct FileLocation {
  Pid pid;
  uint64_t start = 0, end = 0;
  std::string path;
};

// One file that is mapped as code, shared by all mappings of it. Identity and segments come from a worker's reading, on
// first touch by a sample; the identity comes earlier when the kernel told the build-id. Loop thread only.
struct CodeFile {
  static constexpr size_t kLocationsMax = 4;

  enum class State {
    kUnread,   // nobody has asked yet, or there is a new place to try
    kReading,  // a worker has it
    kReady,
    kFailed,  // unreadable wherever it was mapped
  };

  void AddLocation(FileLocation location);

  FileKey key;
  State state = State::kUnread;
  ExecutableId id;  // key.build_id, or what the file says once read
  std::string path;
  std::vector<ElfSegment> segments;
  std::vector<FileLocation> locations;  // the newest last
  std::string_view memory;              // its bytes, when no file has them: the vdso's
  std::string only_function;            // all that there is to know, of code that is in no file: see MakeNamedCode

  uint32_t unwind_table = 0;  // its number in UnwindTables; 0 = none yet

  // Its number in the dictionary of that generation; saves a hash of the id per frame.
  uint64_t interned_generation = 0;
  ExecutableRef interned;
};
using CodeFilePtr = std::shared_ptr<CodeFile>;

// Code that is in no file, and of which no more is known than a name. Its identity is its path.
CodeFilePtr MakeNamedCode(std::string path, std::string function);

// Every executable that a known process has mapped, and where those that samples named were found. Capped: over
// kFilesMax a file is not followed (its frames stay unknown) and counted. Loop thread only.
class CodeFileTable {
 public:
  static constexpr size_t kFilesMax = 16'384;
  static constexpr size_t kSourcesMax = 16'384;

  explicit CodeFileTable(Metrics& metrics);

  // The file's executable, made when it is new; null when it cannot be named, or the table is full. An inode without a
  // build-id may be reused once nothing maps it any more: it is read anew then.
  CodeFilePtr Intern(const FileKey& key, FileLocation location);
  // This machine's vdso: no file, the same for every 64-bit process.
  const CodeFilePtr& vdso() const { return vdso_; }
  void SetVdso(CodeFilePtr vdso) { vdso_ = std::move(vdso); }

  // Where the file of an identity can be read, for the symbol server; empty when it was never seen.
  std::vector<FileLocation> LocationsOf(const ExecutableId& id) const;
  // The executable's id has become known.
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
