#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "bpf/include/config.h"
#include "bpf/include/records.h"
#include "kernel-collector/probes/kernel_counters.h"

struct bpf_object;
struct ring_buffer;

namespace tributary {

// The sampling program in the kernel, its ring buffer and its counters; what the program hangs on is the caller's. One
// thread.
class Sampler {
 public:
  struct Options {
    trib_config config = {};
    uint32_t ring_bytes = 128 << 10;  // a power of two, of pages
    std::string pin_path;             // of the counters; "" pins nothing. A pin that fails is only logged
    std::string_view object;          // ELF; borrowed during Load
  };

  // Internal, PermissionDenied, Unimplemented: one sentence with the end of the verifier's log.
  static absl::StatusOr<std::unique_ptr<Sampler>> Load(const Options& options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  int program_fd() const;
  // Every record that the ring held when the call began, and no more than one ring's worth. Returns how many were good.
  size_t Drain(const std::function<void(const trib_sample&)>& visit);

  // Both outlive the sampler if need be: metrics are read at any time, from any thread.
  std::shared_ptr<const KernelCounters> counters() const { return counters_; }
  // Captured, but not a record that makes sense.
  std::shared_ptr<const Counter> bad_records() const { return bad_records_; }

 private:
  struct Drained;

  Sampler() = default;
  absl::Status Configure(const Options& options);
  absl::Status OpenRing();
  static int OnRecord(void* context, void* data, size_t size);

  bpf_object* object_ = nullptr;  // owned; closed in the destructor
  ring_buffer* ring_ = nullptr;   // owned; freed in the destructor
  uint32_t ring_bytes_ = 0;
  int counters_fd_ = -1;  // borrowed from object_
  std::string pin_path_;
  std::shared_ptr<const KernelCounters> counters_;
  std::shared_ptr<Counter> bad_records_ = std::make_shared<Counter>();
  Drained* drained_ = nullptr;  // borrowed during Drain
};

}  // namespace tributary
