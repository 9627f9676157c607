#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/types.h"
#include "kernel-collector/runtimes/jit/code_table.h"
#include "kernel-collector/runtimes/jit/jit_dump.h"
#include "kernel-collector/runtimes/jit/perf_map.h"
#include "kernel-collector/runtimes/jit/process_files.h"

namespace tributary {

// The names of one process's generated code, as its files give them. Immutable after a reading.
struct JitNames {
  static constexpr uint32_t kForksMax = 4;  // older ancestors' names are dropped

  CodeTable dump, map;
  // Memory with code to which the process has given a name (prctl(PR_SET_VMA)), by start. Only /proc shows such names.
  struct Area {
    uint64_t start = 0, end = 0;
    std::string name;  // such as "[anon:v8]"
  };
  static constexpr size_t kAreasMax = 256;
  static constexpr size_t kAreaNameBytesMax = 128;
  std::vector<Area> areas;
  // The names of the parent when it forked this process, or when it was first read after that. null: none.
  std::shared_ptr<const JitNames> parent;
  uint32_t forks = 0;  // number of ancestors

  // Finds the code that was at `address` at `time`: first by the process's own files.
  bool Find(uint64_t address, MonotonicNs time, CodeName* name) const;
  // Returns the name of the memory at `address`; "" if it has none.
  std::string_view AreaName(uint64_t address) const;
  size_t own_bytes() const { return dump.bytes() + map.bytes(); }
};

// Reads the perf map and the jitdump of one process, again and again: a call reads only what the process has appended
// since the last call. A file that was truncated, changed in front or replaced is read from its start. One thread at a
// time; calls block on files.
class JitReader {
 public:
  static constexpr uint64_t kFileBytesMax = 64u << 20;  // of one file; the bytes after it are ignored
  static constexpr uint64_t kReadBytesMax = 16u << 20;  // in one call

  // The names count in `memory`, also while they are read.
  explicit JitReader(std::shared_ptr<NamesMemory> memory = std::make_shared<NamesMemory>(SIZE_MAX))
      : memory_(std::move(memory)) {}

  struct Request {
    std::string proc_root;
    Pid pid;
    uint64_t start_ticks = 0;            // 0: unknown
    std::string dump_path;               // as the process sees it; "": none is known
    Pid parent;                          // 0: the caller does not ask for is_in_parents_container
    uint64_t bytes_max = kReadBytesMax;  // of both files
    size_t memory_bytes_max = SIZE_MAX;  // of the names of the process
    bool wants_areas = false;
  };
  struct Result {
    absl::Status process;  // not OK: the process has ended, or cannot be read
    bool is_in_parents_container = false;
    absl::Status map, dump;    // NotFound: there is no such file. Otherwise why the file is not used
    bool is_complete = false;  // both files were read to their ends
    bool grew = false;         // there are more names than before
    uint64_t bytes = 0;        // read
    uint64_t malformed = 0;    // lines and records
    uint64_t refused = 0;      // functions above a limit
    MonotonicNs began, ended;
    CodeTable dump_names, map_names;
    std::vector<JitNames::Area> areas;
  };
  Result Read(const Request& request, const Clock& clock);

 private:
  // A file that grows.
  struct File {
    bool is_known = false;
    uint64_t device = 0, inode = 0;
    uint64_t offset = 0;     // of the next byte to read
    uint64_t read = 0;       // bytes
    uint64_t size = 0;       // at the last call
    std::string last_bytes;  // that were read, before `last_end`. They differ if the file was written anew
    uint64_t last_end = 0;
  };
  class MapInput;
  class DumpInput;

  template <typename Input>
  absl::Status ReadFile(const ProcessFiles& files, const std::string& path, File& file, Input& input,
                        const Request& request, Result* result, bool* at_end);
  static bool IsChanged(const ProcessFiles::File& opened, const File& file);
  void ReadMap(const ProcessFiles& files, const Request& request, const Clock& clock, Result* result, bool* at_end);
  void ReadDump(const ProcessFiles& files, const Request& request, const Clock& clock, Result* result, bool* at_end);

  const std::shared_ptr<NamesMemory> memory_;
  File map_file_, dump_file_;
  PerfMapParser map_parser_;
  JitDumpParser dump_parser_;
  CodeTable map_names_, dump_names_;
  MonotonicNs last_complete_;  // when the last complete reading began; 0: there was none
};

}  // namespace tributary
