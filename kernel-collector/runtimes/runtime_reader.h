#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "elf/elf_file.h"
#include "kernel-collector/processes/runtime_binary.h"
#include "kernel-collector/runtimes/runtime_kinds.h"

namespace tributary {

// Finds the language runtime in a file. Files with the same runtime, such as the copies of one image in many
// containers, share one RuntimeBinary. They share it by what was read from them, not by their identity: anyone can
// write a file with the build ID of another. Thread-safe.
class RuntimeReader {
 public:
  static constexpr size_t kKnownMax = 512;

  RuntimeReader(RuntimeSet runtimes, const Clock& clock, Metrics& metrics,
                std::span<const RuntimeKind> kinds = RuntimeKinds());

  // Returns null if the file has no runtime, or none that is on and can be read. Reads the file.
  RuntimeBinaryPtr Read(ElfFile& file, std::string_view path);

 private:
  RuntimeBinaryPtr Share(const RuntimeBinaryPtr& binary, std::string_view path);

  const RuntimeSet runtimes_;
  const Clock& clock_;
  const std::span<const RuntimeKind> kinds_;
  Counter& unsupported_;
  std::mutex mutex_;  // of the fields below
  std::vector<std::weak_ptr<const RuntimeBinary>> known_;
  LogLimit found_{kNsPerMinute}, warnings_{kNsPerMinute};
};

}  // namespace tributary
