#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/unwind/unwind_compiler.h"
#include "kernel-collector/unwind/unwind_table.h"

namespace tributary {

// Loads the unwind rows of executables into the kernel's maps. A worker compiles the rows of a unit (4 MiB of code)
// when a stack first needs them. There is one table per executable identity; all processes and files with this identity
// share it. The memory for rows is allocated in chunks of 8 MiB: one chunk at first, and up to `memory_bytes_max`
// later. When this memory is full, units that no walk has used lately are evicted, and compiled again when a sample
// needs them. The unit with the most requests is compiled first. Compiling uses at most `compile_ns_per_second` of CPU
// time on average, and `compile_burst_ns` at once. Loop thread only.
class UnwindTables {
 public:
  static constexpr uint32_t kUnitBytes = UnwindTable::kUnitPages << TRIB_PAGE_SHIFT;
  static constexpr uint32_t kUnitRowsMax = TRIB_CHUNK_ROWS / 4;  // ten times the rows of the densest unit seen
  static constexpr size_t kQueueMax = 4096;
  static constexpr uint32_t kCompilingMax = 2;

  struct Options {
    std::string proc_root = "/proc";
    uint64_t memory_bytes_max = 64u << 20;
    int64_t compile_ns_per_second = 200 * kNsPerMs;
    int64_t compile_burst_ns = 3 * kNsPerSecond;
    int64_t retry_ns = kNsPerMinute;  // delay before a unit that could not be loaded is tried again
  };

  // Adds the first chunk, which blocks for some milliseconds. `maps` must outlive the executor's jobs. If `compiler` is
  // null, a compiler in this process is used.
  UnwindTables(UnwindMaps& maps, Executor& executor, const Clock& clock, Metrics& metrics, Options options,
               std::shared_ptr<UnwindCompiler> compiler = nullptr);
  ~UnwindTables();

  // Returns the value of trib_mapping.first_page for the executable. The segments of the executable must be known
  // (state kReady). Reserves the executable's page entries on first use. Returns nullopt if the executable has no code.
  // Also returns nullopt, and counts the refusal, if too few page entries are free even after unused tables were
  // dropped. Stacks in the executable are then walked by frame pointers.
  std::optional<uint32_t> FirstPage(const CodeFilePtr& executable);

  // Does the same for a caller that publishes a mapping of the executable. The page entries then stay reserved until
  // Release. The caller must call Release only when no walk can use that mapping any more.
  struct Reserved {
    uint32_t number = 0;  // CodeFile.unwind_table
    uint32_t first_page = 0;
    TextPages text;  // entries outside it belong to other executables
  };
  std::optional<Reserved> Reserve(const CodeFilePtr& executable);
  void Release(uint32_t number);

  // Returns the rule at an ELF address of the executable; NONE if the address is not in its code, or if its unit could
  // not be loaded; nullopt if the rule is not loaded.
  std::optional<uint64_t> Find(const CodeFile& executable, uint64_t address);
  // Requests that the unit with `address` is loaded. Costs little if the unit is already loaded or queued. `address` is
  // the address that the walk looked up: for a caller, the return address − 1.
  void Request(const CodeFilePtr& executable, uint64_t address);
  // Returns whether threads or processes start in the function at `address` (UnwindSource::starts). Returns false while
  // no unit of the executable is loaded.
  bool IsStart(const CodeFile& executable, uint64_t address) const;

  // Submits jobs, adds chunks and evicts units. Call it several times a second.
  void Tick();
  // Returns a number that changes whenever rows are published. A sample that waits for rows may then continue.
  uint64_t publications() const;
  bool idle() const;  // nothing is queued or being loaded

  uint64_t memory_bytes() const;  // memory of the chunks in use

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
