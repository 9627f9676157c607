#include "kernel-collector/probes/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/libbpf_log.h"
#include "kernel-collector/probes/preflight.h"

namespace tributary {
namespace {

// Before 5.11, maps count as locked memory. libbpf asks for no limit at all, which needs CAP_SYS_RESOURCE; raising the
// limit up to the hard limit needs no capability. A refusal is no error: if the limit is too low, the load fails.
void RaiseLockedMemoryLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) LogDebug("cannot raise the limit of locked memory errno={}", errno);
}

}  // namespace

absl::Status Sampler::Configure(const Options& options) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_) {
    // libbpf prefixes a section's map with the object's name.
    if (!std::string_view(bpf_map__name(map)).ends_with(".rodata")) continue;
    if (bpf_map__set_initial_value(map, &options.config, sizeof(options.config)) == 0) break;
    return Error(absl::StatusCode::kInternal,
                 "the sampling program's configuration has a different size than the collector's");
  }
  bpf_map* samples = bpf_object__find_map_by_name(object_, "trib_samples");
  bpf_map* copies = bpf_object__find_map_by_name(object_, "trib_copies");
  if (map == nullptr || samples == nullptr || copies == nullptr) {
    return Error(absl::StatusCode::kInternal,
                 "the sampling program lacks its section .rodata, map trib_samples or map trib_copies");
  }
  if (int error = bpf_map__set_max_entries(samples, options.ring_bytes); error != 0) {
    return ErrnoStatus("set the size of", "the ring buffer of samples", -error);
  }
  if (int error = bpf_map__set_max_entries(copies, options.copies_bytes); error != 0) {
    return ErrnoStatus("set the size of", "the ring buffer of stack copies", -error);
  }
  bpf_map* states = bpf_object__find_map_by_name(object_, "trib_states");
  bpf_map* counters = bpf_object__find_map_by_name(object_, "trib_counters");
  if (states == nullptr || counters == nullptr || bpf_map__set_max_entries(states, options.contexts) != 0 ||
      bpf_map__set_max_entries(counters, TRIB_COUNTER_SLOTS(options.contexts)) != 0) {
    return Error(absl::StatusCode::kInternal,
                 "the sampling program lacks map trib_states or map trib_counters, or their size cannot be set");
  }
  RETURN_IF_ERROR(ProcessPrograms::Configure(object_, options.events_bytes, options.config.repeat_events != 0));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Load(const Options& options) {
  LibbpfLog log;
  RaiseLockedMemoryLimit();
  std::unique_ptr<Sampler> sampler(new Sampler);

  LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "tributary");
  sampler->object_ = bpf_object__open_mem(options.object.data(), options.object.size(), &open_options);
  if (sampler->object_ == nullptr) return ExplainBpfLoadError(errno, log.text());
  RETURN_IF_ERROR(sampler->Configure(options));
  if (int error = bpf_object__load(sampler->object_); error != 0) return ExplainBpfLoadError(-error, log.text());

  bpf_map* counters = bpf_object__find_map_by_name(sampler->object_, "trib_counters");
  if (counters == nullptr || sampler->program_fd() < 0) {
    return Error(absl::StatusCode::kInternal,
                 "the sampling program's object file lacks map trib_counters or program trib_sample_cpu");
  }
  sampler->counters_fd_ = bpf_map__fd(counters);
  Fd copy(fcntl(sampler->counters_fd_, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return ErrnoStatus("dup", "map trib_counters", errno);
  sampler->counters_ = std::make_shared<const KernelCounters>(std::move(copy), options.contexts);
  RETURN_IF_ERROR(sampler->OpenMaps());
  sampler->SetPeriod(options.period_ns);

  PinnedSession::Options pins;
  pins.folder = options.pin_folder;
  sampler->pinned_session_ =
      std::make_unique<PinnedSession>(std::move(pins), sampler->counters_fd_, sampler->counters_);
  // After the counters were pinned, because from here on process events are counted.
  if (options.events_bytes != 0) {
    ASSIGN_OR_RETURN(sampler->process_programs_,
                     ProcessPrograms::Attach(sampler->object_, sampler->counters_, options.events_leave_out));
  }
  return sampler;
}

absl::Status Sampler::OpenMaps() {
  ASSIGN_OR_RETURN(samples_fd_, OpenRing("trib_samples", &samples_));
  ASSIGN_OR_RETURN(copies_fd_, OpenRing("trib_copies", &copies_));
  ASSIGN_OR_RETURN(unwind_maps_, KernelUnwindMaps::Open(object_));
  bpf_map* chains = bpf_object__find_map_by_name(object_, "trib_chain_counters");
  if (chains == nullptr)
    return Error(absl::StatusCode::kInternal, "the sampling program lacks map trib_chain_counters");
  Fd chains_copy(fcntl(bpf_map__fd(chains), F_DUPFD_CLOEXEC, 0));
  if (!chains_copy.valid()) return ErrnoStatus("dup", "map trib_chain_counters", errno);
  chain_counters_ = std::make_shared<const ChainCounters>(std::move(chains_copy));
  bpf_map* control = bpf_object__find_map_by_name(object_, "trib_control");
  if (control == nullptr) return Error(absl::StatusCode::kInternal, "the sampling program lacks map trib_control");
  Fd copy(fcntl(bpf_map__fd(control), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return ErrnoStatus("dup", "map trib_control", errno);
  ASSIGN_OR_RETURN(SharedArray shared, SharedArray::Map(std::move(copy), sizeof(trib_control), "trib_control"));
  control_.emplace(std::move(shared));
  return absl::OkStatus();
}

// Returns the ring's descriptor, which is borrowed from the object.
absl::StatusOr<int> Sampler::OpenRing(const char* name, std::optional<MappedRing>* ring) {
  const bpf_map* map = bpf_object__find_map_by_name(object_, name);
  ASSIGN_OR_RETURN(MappedRing mapped, MappedRing::Map(bpf_map__fd(map), bpf_map__max_entries(map), name));
  ring->emplace(std::move(mapped));
  return bpf_map__fd(map);
}

Sampler::~Sampler() {
  process_programs_.reset();
  bpf_object__close(object_);
}

void Sampler::SetPeriod(uint64_t period_ns) {
  std::atomic_ref(control_->As<trib_control>()[0].period_ns).store(period_ns, std::memory_order_relaxed);
}

int Sampler::program_fd() const {
  bpf_program* program = bpf_object__find_program_by_name(object_, "trib_sample_cpu");
  return program == nullptr ? -1 : bpf_program__fd(program);
}

void Sampler::CountBad(std::span<const uint8_t> bytes) {
  bad_records_.Add(SampleRecord::TypeOf(bytes), 1);
  bad_record_counter_->Add();
}

size_t Sampler::Drain(const std::function<void(const SampleRecord&)>& visit) {
  size_t good = 0;
  auto on_record = [&](const std::optional<SampleRecord>& record, std::span<const uint8_t> bytes) {
    if (!record) return CountBad(bytes);
    ++good;
    visit(*record);
  };
  samples_->consumer().Drain(
      [&](std::span<const uint8_t> bytes) { on_record(SampleRecord::FromSample(bytes), bytes); });
  copies_->consumer().Drain([&](std::span<const uint8_t> bytes) { on_record(SampleRecord::FromCopy(bytes), bytes); });
  return good;
}

}  // namespace tributary
