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

// Which executables' unwind rows the kernel side has. Rows are compiled on first touch, a unit of 4 MiB of text at a
// time, by a worker; one table an executable (by identity), whatever the number of processes and files that have it.
// Rows fill chunks of 8 MiB, one at first, up to `memory_bytes_max`; then the units that no walk has touched lately are
// taken back, and compiled anew when they are wanted again. Units that most samples wait for come first; compiling
// spends at most `compile_ns_per_second` of CPU, after a burst. Loop thread only.
class UnwindTables {
 public:
  static constexpr uint32_t kUnitBytes = UnwindTable::kUnitPages << TRIB_PAGE_SHIFT;
  static constexpr uint32_t kUnitRowsMax = TRIB_CHUNK_ROWS / 4;  // ten times what the densest unit seen needs
  static constexpr size_t kQueueMax = 4096;
  static constexpr uint32_t kCompilingMax = 2;

  struct Options {
    std::string proc_root = "/proc";
    uint64_t memory_bytes_max = 64u << 20;
    int64_t compile_ns_per_second = 200 * kNsPerMs;
    int64_t compile_burst_ns = 3 * kNsPerSecond;
    int64_t retry_ns = kNsPerMinute;  // of a unit whose file could not be read
  };

  // Adds the first chunk, which blocks for some milliseconds. `maps` outlives the executor's jobs. `compiler`: null =
  // one in this process.
  UnwindTables(UnwindMaps& maps, Executor& executor, const Clock& clock, Metrics& metrics, Options options,
               std::shared_ptr<UnwindCompiler> compiler = nullptr);
  ~UnwindTables();

  // trib_mapping.first_page of the executable, whose segments are known (state kReady); reserves its page entries on
  // first use. nullopt: it has no code, or there is no room for so much text even after taking back what is unused
  // (counted): frame pointers then.
  std::optional<uint32_t> FirstPage(const CodeFilePtr& executable);

  // The same, for who publishes it: page entries that a published mapping names stay the executable's until Release,
  // which comes when no walk can see that mapping any more.
  struct Reserved {
    uint32_t number = 0;  // CodeFile.unwind_table
    uint32_t first_page = 0;
    TextPages text;  // addresses outside are other executables' entries
  };
  std::optional<Reserved> Reserve(const CodeFilePtr& executable);
  void Release(uint32_t number);

  // The rule at an ELF address of it, NONE outside its text; nullopt: not loaded.
  std::optional<uint64_t> Find(const CodeFile& executable, uint64_t address);
  // Wants the unit of that address loaded. Cheap when it is already, or is on its way. `address` is where the walk
  // looked: a caller's return address − 1.
  void Request(const CodeFilePtr& executable, uint64_t address);
  // A function where threads or processes start (UnwindSource::starts); false as long as none of it is loaded.
  bool IsStart(const CodeFile& executable, uint64_t address) const;

  // Several times a second: submits work, grows, takes back.
  void Tick();
  // Changes whenever rows were published: whether waiting for some may be over.
  uint64_t publications() const;
  bool idle() const;  // nothing wanted, nothing on its way

  uint64_t memory_bytes() const;  // of chunks in use

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
