#include "kernel-collector/probes/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/libbpf_log.h"
#include "kernel-collector/probes/preflight.h"
#include "kernel-collector/probes/sample_record.h"

namespace tributary {
namespace {

constexpr uint32_t kRingRecordHeaderBytes = 8;  // BPF_RINGBUF_HDR_SZ

// Before 5.11 maps count as locked memory. libbpf asks for no limit at all, which takes CAP_SYS_RESOURCE; the hard
// limit is ours without it. A refusal is no error: the load itself will tell.
void RaiseLockedMemoryLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) LogDebug("locked memory limit not raised errno={}", errno);
}

}  // namespace

struct Sampler::Drained {
  const std::function<void(const trib_sample&)>& visit;
  size_t good = 0;
  size_t bytes = 0;
};

absl::Status Sampler::Configure(const Options& options) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_) {
    // libbpf prefixes a section's map with the object's name.
    if (!std::string_view(bpf_map__name(map)).ends_with(".rodata")) continue;
    if (bpf_map__set_initial_value(map, &options.config, sizeof(options.config)) == 0) break;
    return Error(absl::StatusCode::kInternal, "the sampling program's configuration has another size than ours");
  }
  bpf_map* ring = bpf_object__find_map_by_name(object_, "trib_samples");
  if (map == nullptr || ring == nullptr) {
    return Error(absl::StatusCode::kInternal, "the sampling program lacks its configuration or its ring");
  }
  if (int error = bpf_map__set_max_entries(ring, options.ring_bytes); error != 0) {
    return ErrnoStatus("size", "the sample ring", -error);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Load(const Options& options) {
  LibbpfLog log;
  RaiseLockedMemoryLimit();
  std::unique_ptr<Sampler> sampler(new Sampler);
  sampler->ring_bytes_ = options.ring_bytes;

  LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "tributary");
  sampler->object_ = bpf_object__open_mem(options.object.data(), options.object.size(), &open_options);
  if (sampler->object_ == nullptr) return ExplainBpfLoadError(errno, log.text());
  RETURN_IF_ERROR(sampler->Configure(options));
  if (int error = bpf_object__load(sampler->object_); error != 0) return ExplainBpfLoadError(-error, log.text());

  bpf_map* counters = bpf_object__find_map_by_name(sampler->object_, "trib_counters");
  if (counters == nullptr || sampler->program_fd() < 0) {
    return Error(absl::StatusCode::kInternal, "the sampling program lacks its counters or its entry");
  }
  sampler->counters_fd_ = bpf_map__fd(counters);
  Fd copy(fcntl(sampler->counters_fd_, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return ErrnoStatus("dup", "map trib_counters", errno);
  sampler->counters_ = std::make_shared<const KernelCounters>(std::move(copy));
  RETURN_IF_ERROR(sampler->OpenRing());

  if (!options.pin_path.empty()) {
    if (absl::Status status = PinnedMap::Pin(sampler->counters_fd_, options.pin_path); status.ok()) {
      sampler->pin_path_ = options.pin_path;
    } else {
      LogDebug("counters not pinned cause={}", Message(status));
    }
  }
  return sampler;
}

absl::Status Sampler::OpenRing() {
  int fd = bpf_map__fd(bpf_object__find_map_by_name(object_, "trib_samples"));
  ring_ = ring_buffer__new(fd, OnRecord, this, nullptr);
  if (ring_ == nullptr) return ErrnoStatus("map", "the sample ring", errno);
  return absl::OkStatus();
}

Sampler::~Sampler() {
  if (!pin_path_.empty()) PinnedMap::Unpin(counters_fd_, pin_path_);
  ring_buffer__free(ring_);
  bpf_object__close(object_);
}

int Sampler::program_fd() const {
  bpf_program* program = bpf_object__find_program_by_name(object_, "trib_sample_cpu");
  return program == nullptr ? -1 : bpf_program__fd(program);
}

int Sampler::OnRecord(void* context, void* data, size_t size) {
  auto* self = static_cast<Sampler*>(context);
  Drained& drained = *self->drained_;
  if (const trib_sample* sample = CheckSampleRecord({static_cast<const uint8_t*>(data), size})) {
    ++drained.good;
    drained.visit(*sample);
  } else {
    self->bad_records_->Add();
  }
  drained.bytes += size + kRingRecordHeaderBytes;
  // Past one lap, what is read was written since the call began: a busy kernel must not keep the loop.
  return drained.bytes >= self->ring_bytes_ ? -ECANCELED : 0;
}

size_t Sampler::Drain(const std::function<void(const trib_sample&)>& visit) {
  Drained drained{.visit = visit};
  drained_ = &drained;
  int result = ring_buffer__consume(ring_);
  drained_ = nullptr;
  if (result < 0 && result != -ECANCELED) LogDebug("sample ring not read result={}", result);
  return drained.good;
}

}  // namespace tributary
