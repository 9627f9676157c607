// Measures what a sample costs the collector after the stack walk: addresses to frames, frames to a node of the
// dictionary's trie, a batch every 1,000 samples. The process has 200 mappings of 40 files. 5,000 stacks of 20 frames
// share their outer halves, like the stacks of a server. Every stack is known after its first sample.

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/processes/stack_resolver.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/uplink/batcher.h"

namespace tributary {
namespace {

constexpr size_t kFiles = 40, kMappings = 200, kStacks = 5'000, kFrames = 20, kRoots = 100, kSamplesPerBatch = 1'000;
constexpr uint64_t kFirstMapping = 0x7f0000000000, kMappingBytes = 0x100000;

class NoExecutor : public Executor {
 public:
  bool Submit(std::function<void()>, std::function<void()>) override { return false; }
};

class NoSink : public BatchSink {
 public:
  absl::Status Take(Batch batch) override {
    benchmark::DoNotOptimize(batch.samples.data());
    return absl::OkStatus();
  }
};

class Bench {
 public:
  Bench() {
    std::vector<CodeFilePtr> files;
    for (size_t i = 0; i < kFiles; ++i) {
      files.push_back(std::make_shared<CodeFile>());
      char id[20] = {};
      std::memcpy(id, &i, sizeof i);
      files.back()->id = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view(id, sizeof id));
      files.back()->state = CodeFile::State::kReady;
      files.back()->segments = {{.file_size = kMappingBytes, .address = 0x400000, .memory_size = kMappingBytes}};
    }
    for (size_t i = 0; i < kMappings; ++i) {
      const uint64_t start = kFirstMapping + 2 * i * kMappingBytes;
      run_.mappings.Insert(
          {.start = start, .end = start + kMappingBytes, .file_offset = 0, .executable = files[i % kFiles]});
    }
    run_.comm = "bench";
    std::mt19937_64 random(1);
    auto address = [&] { return kFirstMapping + 2 * (random() % kMappings) * kMappingBytes + random() % 4'096 * 16; };
    std::vector<std::vector<uint64_t>> roots(kRoots);
    for (auto& root : roots) {
      for (size_t i = 0; i < kFrames / 2; ++i) root.push_back(address());
    }
    for (size_t i = 0; i < kStacks; ++i) {
      std::vector<uint64_t>& stack = stacks_.emplace_back();
      for (size_t j = 0; j < kFrames / 2; ++j) stack.push_back(address());
      const std::vector<uint64_t>& root = roots[random() % kRoots];
      stack.insert(stack.end(), root.begin(), root.end());
    }
  }

  void Resolve() {
    next_ = (next_ + 1) % kStacks;
    resolver_.Resolve(
        {.kernel = {}, .user = stacks_[next_], .flags = 0, .time = MonotonicNs{1}}, run_, nullptr,
        [](const CodeFilePtr&) {}, &resolved_);
    benchmark::DoNotOptimize(resolved_.frames.data());
  }
  void Add() {
    NamedSample sample;
    sample.time = MonotonicNs{static_cast<int64_t>(++added_)};
    sample.tid = Tid{1};
    sample.thread_name = "bench";
    batcher_.Add(sample, run_, resolved_, [] { return Accounting(); });
    if (added_ % kSamplesPerBatch == 0) batcher_.Flush(Accounting());
  }

 private:
  NoExecutor executor_;
  FakeClock clock_;
  Metrics metrics_;
  NoSink sink_;
  KernelCode kernel_{{}, executor_, clock_, metrics_};
  StackResolver resolver_{kernel_};
  Batcher batcher_{sink_, clock_};
  ProcessRun run_;
  std::vector<std::vector<uint64_t>> stacks_;
  ResolvedStack resolved_;
  size_t next_ = 0, added_ = 0;
};

void Resolve(benchmark::State& state) {
  Bench bench;
  for (auto _ : state) bench.Resolve();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Resolve);

void ResolveAndBatch(benchmark::State& state) {
  Bench bench;
  for (size_t i = 0; i < kStacks; ++i) {
    bench.Resolve();
    bench.Add();
  }
  for (auto _ : state) {
    bench.Resolve();
    bench.Add();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ResolveAndBatch);

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
