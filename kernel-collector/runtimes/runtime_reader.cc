#include "kernel-collector/runtimes/runtime_reader.h"

#include <cstring>
#include <type_traits>

#include "base/status.h"

namespace tributary {
namespace {

static_assert(std::has_unique_object_representations_v<trib_runtime>);  // memcmp compares them

bool IsSame(const RuntimeBinary& a, const RuntimeBinary& b) {
  return a.name == b.name && a.version == b.version && a.kind == b.kind && a.loops == b.loops &&
         std::memcmp(&a.layout, &b.layout, sizeof(a.layout)) == 0 && a.ReadsFunctionsLike(b);
}

}  // namespace

RuntimeReader::RuntimeReader(RuntimeSet runtimes, const Clock& clock, Metrics& metrics,
                             std::span<const RuntimeKind> kinds)
    : runtimes_(runtimes),
      clock_(clock),
      kinds_(kinds),
      unsupported_(metrics.AddCounter("tributary_collector_runtimes_unsupported_total",
                                      "Files with a language runtime that could not be read, or whose version is not "
                                      "supported: functions of its language have no names; the log has the file")) {}

RuntimeBinaryPtr RuntimeReader::Read(ElfFile& file, std::string_view path) {
  for (const RuntimeKind& kind : kinds_) {
    if ((runtimes_ >> kind.number & 1) == 0) continue;
    const absl::StatusOr<RuntimeBinaryPtr> binary = kind.read(file, path);
    if (binary.ok() && *binary != nullptr) return Share(*binary, path);
    if (binary.ok()) continue;
    unsupported_.Add();
    const std::lock_guard lock(mutex_);
    if (uint64_t held; warnings_.Allow(clock_.Monotonic(), &held)) {
      LogWarning("a language runtime cannot be read runtime={} path={} cause=\"{}\" suppressed={}", kind.name, path,
                 Message(binary.status()), held);
    }
  }
  return nullptr;
}

RuntimeBinaryPtr RuntimeReader::Share(const RuntimeBinaryPtr& binary, std::string_view path) {
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<const RuntimeBinary>& item : known_) {
    if (RuntimeBinaryPtr known = item.lock(); known != nullptr && IsSame(*known, *binary)) return known;
  }
  if (known_.size() >= kKnownMax) std::erase_if(known_, [](const auto& item) { return item.expired(); });
  if (known_.size() < kKnownMax) known_.push_back(binary);
  if (uint64_t held; found_.Allow(clock_.Monotonic(), &held)) {
    LogInfo("found a language runtime runtime={} version={} path={} suppressed={}", binary->name, binary->version, path,
            held);
  }
  return binary;
}

}  // namespace tributary
