// Runs the collector's own path from samples to stacks with a sampling program that stops a process where it samples
// the process. Reads lines "PID" from standard input. For each line it stops that process once and writes one line with
// fields separated by tabs:
//   stopped  TID  ENDING  and for each user frame, innermost first,  ELF address (hexadecimal)  executable id  path
// or  failed  REASON.  For a frame without a file, the address is the memory address and the id is empty.
// With --runtimes it also reads frames of language runtimes, and the fields of a frame are  kind  function  path  line.

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "bpf/include/test_stop.h"
#include "embedded/sampler_stop_bpf_object.h"
#include "kernel-collector/collector_core.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/runtimes/process_memory.h"
#include "kernel-collector/runtimes/runtime_kinds.h"
#include "symbols/kallsyms.h"

namespace tributary {
namespace {

constexpr uint32_t kSampleRateHz = 499;
constexpr int64_t kPatienceNs = 10 * kNsPerSecond;
constexpr int kPollMs = 5;

// Runs the work inside Submit: this program need not be fast.
class InlineExecutor : public Executor {
 public:
  bool Submit(std::function<void()> work, std::function<void()> done) override {
    work();
    done_.push_back(std::move(done));
    return true;
  }
  void RunDone() {
    while (!done_.empty()) {
      auto done = std::move(done_.front());
      done_.pop_front();
      done();
    }
  }

 private:
  std::deque<std::function<void()>> done_;
};

// Waits for the sample of one stop.
class StopSink : public BatchSink {
 public:
  explicit StopSink(bool has_runtimes) : has_runtimes_(has_runtimes) {}

  void Expect(const trib_stop_request& stop) { expected_ = stop; }
  const std::string& line() const { return line_; }
  void Clear() {
    expected_.reset();
    line_.clear();
  }

  absl::Status Take(Batch batch) override {
    batches_.push_back(std::move(batch));
    return absl::OkStatus();
  }
  // Searches the batches that have arrived, then drops them: their samples are older than any later stop.
  void Search() {
    for (const Batch& batch : batches_) {
      for (const Sample& sample : batch.samples) {
        const Thread& thread = batch.dictionary->thread(sample.thread);
        bool is_it = sample.time.value == static_cast<int64_t>(expected_->time_ns) &&
                     thread.tid.value == static_cast<int32_t>(expected_->tid);
        if (is_it) line_ = Line(*batch.dictionary, sample, thread);
      }
    }
    batches_.clear();
  }
  void Forget() { batches_.clear(); }

 private:
  std::string Line(const Dictionary& dictionary, const Sample& sample, const Thread& thread) const {
    std::string line = fmt::format("stopped\t{}\t{}", thread.tid.value, EndingName(sample.ending));
    for (NodeRef node = sample.node; node.value != 0; node = dictionary.node(node).parent) {
      const Frame& frame = dictionary.frame(dictionary.node(node).frame);
      if (frame.kind == FrameKind::kKernel) continue;
      const Executable& executable = dictionary.executable(frame.executable);
      if (has_runtimes_) {
        line += fmt::format("\t{}\t{}\t{}\t{}", kFrameKinds[static_cast<size_t>(frame.kind)].name,
                            dictionary.string(frame.name), dictionary.string(executable.path), frame.position);
        continue;
      }
      line += fmt::format("\t{:x}\t{}\t{}", frame.address, frame.executable.value != 0 ? executable.id.ToString() : "",
                          dictionary.string(executable.path));
    }
    return line;
  }

  const bool has_runtimes_;
  std::optional<trib_stop_request> expected_;
  std::string line_;
  std::vector<Batch> batches_;
};

// Returns the newest map with the name trib_test_stop, because this process has just created that map.
absl::StatusOr<Fd> FindStopMap() {
  Fd found;
  for (uint32_t id = 0; bpf_map_get_next_id(id, &id) == 0;) {
    Fd map(bpf_map_get_fd_by_id(id));
    bpf_map_info info = {};
    uint32_t bytes = sizeof info;
    if (map.get() < 0 || bpf_obj_get_info_by_fd(map.get(), &info, &bytes) != 0) continue;
    if (std::string_view(info.name) == "trib_test_stop") found = std::move(map);
  }
  if (found.get() < 0) return Error(absl::StatusCode::kNotFound, "the sampling program has no trib_test_stop");
  return found;
}

class Stopper {
 public:
  explicit Stopper(bool has_runtimes) : has_runtimes_(has_runtimes), sink_(has_runtimes) {}

  absl::Status Start() {
    ProbeOptions probe_options{.sample_rate_hz = kSampleRateHz};
    probe_options.object = embedded::sampler_stop_bpf_object();
    ASSIGN_OR_RETURN(probes_, Probes::Open(probe_options, metrics_));
    ASSIGN_OR_RETURN(stop_map_, FindStopMap());
    CoreOptions options;
    if (has_runtimes_) {
      options.runtimes = AllRuntimes();
      options.open_memory = [this](Pid pid, const std::string& group) { return memory_.Open(pid, group); };
      options.forget_memory = [this](Pid pid) { memory_.Forget(pid); };
    }
    core_ = std::make_unique<CollectorCore>(*probes_, sink_, executor_, Clock::Real(), metrics_, std::move(options));
    SetVdso();
    core_->ScanAll();
    return probes_->StartSampling();
  }

  void Poll() {
    core_->Poll();
    executor_.RunDone();
    core_->FlushBatch();
  }
  void Idle() {
    Poll();
    sink_.Forget();
  }

  std::string Stop(uint32_t pid) {
    Ask({.pid = pid});
    sink_.Clear();
    int64_t until = Clock::Real().Monotonic().value + kPatienceNs;
    bool stopped = false;
    while (Clock::Real().Monotonic().value < until) {
      trib_stop_request request = {};
      uint32_t key = 0;
      if (!stopped && bpf_map_lookup_elem(stop_map_.get(), &key, &request) == 0 && request.time_ns != 0) {
        stopped = true;
        sink_.Expect(request);
      }
      Poll();
      if (stopped) sink_.Search();
      if (!sink_.line().empty()) return sink_.line();
      usleep(1000 * kPollMs);
    }
    Ask({});
    return stopped ? "failed\tits sample did not come" : "failed\tno sample of the process";
  }

 private:
  void SetVdso() {
    auto own = ReadOwnVdso();
    TRIBUTARY_CHECK(own.ok());
    auto vdso = std::make_shared<CodeFile>();
    vdso->id = own->id;
    vdso->path = "[vdso]";
    vdso->segments = own->segments;
    vdso->memory = own->bytes;
    vdso->state = CodeFile::State::kReady;
    core_->code_files().SetVdso(std::move(vdso));
  }
  void Ask(const trib_stop_request& request) {
    uint32_t key = 0;
    TRIBUTARY_CHECK(bpf_map_update_elem(stop_map_.get(), &key, &request, BPF_ANY) == 0);
  }

  const bool has_runtimes_;
  Metrics metrics_;
  ProcessMemoryReader memory_{Clock::Real(), metrics_};
  std::unique_ptr<Probes> probes_;
  Fd stop_map_;
  InlineExecutor executor_;
  StopSink sink_;
  std::unique_ptr<CollectorCore> core_;
};

int Run(bool has_runtimes) {
  Stopper stopper(has_runtimes);
  if (absl::Status status = stopper.Start(); !status.ok()) {
    fmt::print(stderr, "stack_stops: {}\n", Message(status));
    return 1;
  }
  fmt::print("ready\n");
  fflush(stdout);
  std::string line;
  for (;;) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, kPollMs) <= 0) {
      stopper.Idle();
      continue;
    }
    char c;
    if (read(STDIN_FILENO, &c, 1) != 1) return 0;
    if (c != '\n') {
      line += c;
      continue;
    }
    fmt::print("{}\n", stopper.Stop(static_cast<uint32_t>(atoi(line.c_str()))));
    fflush(stdout);
    line.clear();
  }
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) { return tributary::Run(argc > 1 && std::string_view(argv[1]) == "--runtimes"); }
