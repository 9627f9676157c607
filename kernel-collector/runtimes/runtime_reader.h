#pragma once

#include <memory>
#include <mutex>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/log.h"
#include "base/metrics.h"
#include "elf/elf_file.h"
#include "kernel-collector/processes/runtime_binary.h"
#include "kernel-collector/runtimes/runtime_kinds.h"
#include "profile/executable_id.h"

namespace tributary {

// Finds the language runtime in a file. Files with the same identity, such as the copies of one image in many
// containers, share one RuntimeBinary. Thread-safe.
class RuntimeReader {
 public:
  static constexpr size_t kKnownMax = 512;

  RuntimeReader(RuntimeSet runtimes, Metrics& metrics, std::span<const RuntimeKind> kinds = RuntimeKinds());

  // Returns null if the file has no runtime, or none that is on and can be read. Reads the file.
  RuntimeBinaryPtr Read(ElfFile& file, const ExecutableId& id, std::string_view path);

 private:
  RuntimeBinaryPtr ReadNew(ElfFile& file, std::string_view path);

  const RuntimeSet runtimes_;
  const std::span<const RuntimeKind> kinds_;
  Counter& unsupported_;
  std::mutex mutex_;  // of the fields below
  absl::flat_hash_map<ExecutableId, std::weak_ptr<const RuntimeBinary>> known_;
  LogLimit log_{kNsPerMinute};
};

}  // namespace tributary
