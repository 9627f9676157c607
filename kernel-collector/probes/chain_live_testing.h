#pragma once

#include <gtest/gtest.h>
#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "kernel-collector/probes/live_testing.h"
#include "kernel-collector/probes/runtime_chain.h"

// Helpers for tests of the chains of language runtimes on the running kernel.

namespace tributary {

constexpr uint16_t kRuntime = 7;

// Returns the layout of CPython 3.11 on 64-bit machines.
inline trib_runtime Python311() {
  trib_runtime runtime = {.kind = TRIB_RUNTIME_PYTHON};
  runtime.python = {.thread_id = 152,
                    .frame = 56,
                    .cframe_frame = 8,
                    .has_cframe = 1,
                    .entry = TRIB_PYTHON_ENTRY_FLAG,
                    .frame_bytes = 72,
                    .frame_back = 48,
                    .frame_code = 32,
                    .frame_instruction = 56,
                    .frame_owner = 68,
                    .instruction_is_pointer = 1,
                    .check_first = 56,
                    .check_bytes = 88,
                    .code_name = 120,
                    .name_hash = 24,
                    .code_instructions = 184};
  return runtime;
}

// Reads a word of a process's memory. Returns 0 if it cannot be read.
inline uint64_t WordAt(Pid pid, uint64_t address) {
  uint64_t word = 0;
  const iovec local = {.iov_base = &word, .iov_len = sizeof(word)};
  const iovec remote = {.iov_base = reinterpret_cast<void*>(address), .iov_len = sizeof(word)};
  return process_vm_readv(pid.value, &local, 1, &remote, 1, 0) == sizeof(word) ? word : 0;
}

// Computes the check of a code object from the process's memory.
inline uint32_t CheckOf(Pid pid, const trib_python& layout, uint64_t code) {
  uint64_t hash = 0;
  for (uint64_t at = layout.check_first; at < uint64_t{layout.check_first} + layout.check_bytes; at += 8) {
    hash = TRIB_CHECK_ADD(hash, WordAt(pid, code + at));
  }
  const uint64_t name = WordAt(pid, code + layout.code_name);
  return static_cast<uint32_t>(TRIB_CHECK_ADD(hash, WordAt(pid, name + layout.name_hash)) >> 32);
}

// A sample with its chains.
struct SeenChains {
  struct Chain {
    uint16_t runtime = 0;
    trib_chain_end end = TRIB_CHAIN_COMPLETE;
    std::vector<RuntimeFrame> frames;
  };
  trib_sample sample = {};
  std::vector<Chain> chains;
  std::optional<trib_executable_key> executable;  // of a sample with a copy of the stack
};

class ChainLiveTest : public testing::Test {
 protected:
  void SetUp() override {
    // The first samples of all other processes come with copies too.
    probes = OpenProbes({.sample_rate_hz = 199, .copies_bytes = 16 << 20}, metrics);
    ASSERT_NE(probes, nullptr);
    ASSERT_TRUE(probes->StartSampling().ok());
  }
  void TearDown() override {
    probes->StopSampling();
    DropSamples();
    EXPECT_EQ(probes->ReadAccounting().LostFor(LossReason::kBadRecord).total(), 0u);
  }

  // Returns the next `count` samples of `pid` that `wanted` accepts.
  std::vector<SeenChains> Samples(Pid pid, size_t count, const std::function<bool(const SeenChains&)>& wanted) {
    std::vector<SeenChains> all;
    Until([&] {
      probes->DrainSamples([&](const SampleRecord& record) {
        if (record.sample->pid != static_cast<uint32_t>(pid.value) || all.size() >= count) return;
        SeenChains seen = Copy(record);
        if (wanted(seen)) all.push_back(std::move(seen));
      });
      return all.size() >= count;
    });
    return all;
  }
  SeenChains One(Pid pid, const std::function<bool(const SeenChains&)>& wanted) {
    std::vector<SeenChains> seen = Samples(pid, 1, wanted);
    return seen.empty() ? SeenChains{} : seen[0];
  }
  // Drops the samples that were taken before, such as those of a child before its exec.
  void DropSamples() {
    probes->DrainSamples([](const SampleRecord&) {});
  }
  // Returns the executable of `pid`, as its next sample with a copy of the stack names it.
  trib_executable_key ExecutableOf(Pid pid) {
    DropSamples();
    return One(pid, [](const SeenChains& seen) { return seen.executable.has_value(); })
        .executable.value_or(trib_executable_key{});
  }
  void SetRuntime(uint16_t number, const trib_runtime& runtime) { probes->unwind_maps().runtimes()[number] = runtime; }
  // Returns the value of a metric of chains, such as `chains_total{runtime="python",end="depth"}`.
  std::string Metric(const std::string& name) {
    const std::string text = metrics.PrometheusText(), line = "tributary_collector_runtime_" + name + ' ';
    const size_t at = text.find(line);
    return at == std::string::npos ? "missing" : text.substr(at + line.size(), text.find('\n', at) - at - line.size());
  }

  Metrics metrics;
  std::unique_ptr<Probes> probes;

 private:
  static SeenChains Copy(const SampleRecord& record) {
    SeenChains seen{.sample = *record.sample};
    if (record.resume != nullptr) seen.executable = record.resume->executable;
    RuntimeChains chains(record.chains);
    size_t words = 0;
    while (const auto chain = chains.Next()) {
      SeenChains::Chain& copy = seen.chains.emplace_back();
      copy.runtime = chain->runtime;
      copy.end = chain->end;
      for (size_t i = 0; i < chain->size(); ++i) copy.frames.push_back(chain->At(i));
      words += 1 + chain->words.size();
    }
    EXPECT_EQ(words, record.chains.size()) << "a malformed chain";
    return seen;
  }
};

}  // namespace tributary
