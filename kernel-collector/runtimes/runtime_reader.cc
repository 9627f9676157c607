#include "kernel-collector/runtimes/runtime_reader.h"

#include "base/clock.h"
#include "base/status.h"

namespace tributary {

RuntimeReader::RuntimeReader(RuntimeSet runtimes, Metrics& metrics, std::span<const RuntimeKind> kinds)
    : runtimes_(runtimes),
      kinds_(kinds),
      unsupported_(metrics.AddCounter("tributary_collector_runtimes_unsupported_total",
                                      "Files with a language runtime that could not be read, or whose version is not "
                                      "supported: functions of its language have no names; the log has the file")) {}

RuntimeBinaryPtr RuntimeReader::Read(ElfFile& file, const ExecutableId& id, std::string_view path) {
  if (runtimes_ == 0) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(id); it != known_.end()) {
      if (RuntimeBinaryPtr known = it->second.lock(); known != nullptr) return known;
    }
  }
  RuntimeBinaryPtr binary = ReadNew(file, path);
  if (binary == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kKnownMax) absl::erase_if(known_, [](const auto& item) { return item.second.expired(); });
  if (known_.size() < kKnownMax) known_.insert_or_assign(id, binary);
  return binary;
}

RuntimeBinaryPtr RuntimeReader::ReadNew(ElfFile& file, std::string_view path) {
  for (const RuntimeKind& kind : kinds_) {
    if ((runtimes_ >> kind.number & 1) == 0) continue;
    const absl::StatusOr<RuntimeBinaryPtr> binary = kind.read(file, path);
    if (binary.ok() && *binary != nullptr) {
      LogInfo("found a language runtime runtime={} version={} path={}", (*binary)->name, (*binary)->version, path);
      return *binary;
    }
    if (binary.ok()) continue;
    unsupported_.Add();
    const std::lock_guard lock(mutex_);
    if (uint64_t held; log_.Allow(Clock::Real().Monotonic(), &held)) {
      LogWarning("a language runtime cannot be read runtime={} path={} cause=\"{}\" suppressed={}", kind.name, path,
                 Message(binary.status()), held);
    }
  }
  return nullptr;
}

}  // namespace tributary
