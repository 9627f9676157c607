// Measures one shard: decode batches, and decode + commit them to SQLite on disk. The samples are synthetic and look
// like a real mix: Zipf-distributed stacks of about 20 frames, with new stacks all the time. If TRIBUTARY_RECORDING
// names a recording (docs/recording.md), the samples come from that recording.

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "intake/recording/recording_reader.h"
#include "intake/wire/frame.h"
#include "profile/batch.h"
#include "reducer/sqlite/sqlite_store.h"

namespace tributary {
namespace {

constexpr size_t kSamplesPerBatch = 1000;
constexpr size_t kBatches = 300;
// The samples are years old. With a shorter retention, the store would not take them.
constexpr int64_t kKeepNs = 3650 * kNsPerDay;

// One node's session: its batches as frames, which can be decoded many times.
struct Recording {
  std::shared_ptr<SessionInfo> session = std::make_shared<SessionInfo>();
  std::vector<intake::Frame> frames;
  size_t wire_bytes = 0;
  size_t samples = 0;
};

Recording Read(const std::string& path) {
  Recording out;
  out.session->node_id = "bench";
  out.session->host_name = "bench";
  auto reader = intake::RecordingReader::Open(path);
  TRIBUTARY_CHECK(reader.ok());
  intake::RecordedSession session;
  intake::RecordedFrame recorded;
  while (*(*reader)->Next(&recorded)) {
    const intake::Frame& frame = recorded.frame;
    if (frame.type != intake::MessageType::kDefinitions && frame.type != intake::MessageType::kBatch) continue;
    out.samples += session.Take(frame)->samples.size();
    out.wire_bytes += recorded.stored_bytes;
    out.frames.push_back(frame);
  }
  return out;
}

Recording Record() {
  Recording out;
  out.session->node_id = "bench";
  out.session->host_name = "bench";
  std::mt19937_64 random(7);
  auto dictionary = std::make_shared<Dictionary>();
  std::vector<ExecutableRef> executables;
  for (int i = 0; i < 50; ++i) {
    std::string id(20, static_cast<char>(i + 1));
    executables.push_back(
        dictionary->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, id), "/usr/lib/x"));
  }
  std::vector<ThreadRef> threads;
  for (int i = 0; i < 200; ++i) {
    ProcessRef process =
        dictionary->InternProcess({.key = {Pid{i + 1}, i, 0}, .comm = dictionary->InternString("worker")});
    threads.push_back(dictionary->InternThread({process, Tid{i + 1}, dictionary->InternString("worker")}));
  }
  intake::BatchEncoder encoder(1);
  intake::FrameDecoder decoder;
  int64_t now = kNsPerSecond;
  for (size_t b = 0; b < kBatches; ++b) {
    Batch batch{.sequence = b + 1, .dictionary = dictionary};
    for (size_t i = 0; i < kSamplesPerBatch; ++i) {
      // u^4 over a growing set of stacks: most samples have few different stacks. At first a sample brings 0.6 new
      // stacks, later fewer.
      double u = std::uniform_real_distribution<double>(0, 1)(random);
      auto stack = static_cast<uint64_t>(std::pow(u, 4) * static_cast<double>(1000 + 20 * b));
      std::mt19937_64 shape(stack);
      NodeRef node;
      for (int depth = 0; depth < 20; ++depth) {
        uint64_t spread = depth < 8 ? 3 : 400;
        node = dictionary->InternNode(
            {node, dictionary->InternFrame({FrameKind::kNative, depth < 19, executables[shape() % executables.size()],
                                            0x1000 * static_cast<uint64_t>(depth) + shape() % spread})});
      }
      now += 1'000'000;
      batch.samples.push_back(
          {.time = MonotonicNs{now}, .thread = threads[random() % threads.size()], .node = node, .value = 10'309'278});
    }
    batch.clock = ClockPair{MonotonicNs{now}, UnixNs{1'760'000'000 * kNsPerSecond + now}};
    batch.accounting.captured = (b + 1) * kSamplesPerBatch;
    for (std::string& frame : encoder.Encode(batch)) {
      out.wire_bytes += frame.size();
      decoder.Append(frame);
      intake::Frame decoded;
      TRIBUTARY_CHECK(*decoder.Next(&decoded));
      out.frames.push_back(std::move(decoded));
    }
    out.samples += kSamplesPerBatch;
  }
  return out;
}

const Recording& TheRecording() {
  static const Recording recording = [] {
    const char* path = std::getenv("TRIBUTARY_RECORDING");
    return path != nullptr ? Read(path) : Record();
  }();
  return recording;
}

std::vector<intake::IncomingBatch> DecodeAll(const Recording& recording) {
  intake::BatchDecoder decoder(1);
  std::vector<intake::IncomingBatch> out;
  for (const intake::Frame& frame : recording.frames) {
    auto batch = decoder.Decode(frame.type, frame.sequence, frame.payload);
    TRIBUTARY_CHECK(batch.ok());
    out.push_back(*std::move(batch));
  }
  return out;
}

void Decode(benchmark::State& state) {
  const Recording& recording = TheRecording();
  for (auto _ : state) benchmark::DoNotOptimize(DecodeAll(recording));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(recording.samples));
  state.counters["wire_bytes_per_sample"] =
      static_cast<double>(recording.wire_bytes) / static_cast<double>(recording.samples);
}
BENCHMARK(Decode)->Unit(benchmark::kMillisecond);

// Commits groups of ten batches, like a busy shard.
void DecodeAndCommit(benchmark::State& state) {
  const Recording& recording = TheRecording();
  std::filesystem::path directory = std::filesystem::temp_directory_path() / "tributary-ingest-bench";
  int round = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::filesystem::remove_all(directory);
    Metrics metrics;
    auto store = store::SqliteStore::Open(directory.string(),
                                          {.raw_age_ns = kKeepNs, .sum_age_ns = kKeepNs, .event_age_ns = kKeepNs},
                                          Clock::Real(), metrics);
    TRIBUTARY_CHECK(store.ok());
    auto writer = (*store)->OpenWriter(0);
    TRIBUTARY_CHECK(writer.ok());
    auto session = std::make_shared<SessionInfo>(*recording.session);
    session->session_id[0] = static_cast<uint8_t>(++round);
    state.ResumeTiming();
    std::vector<RowBatch> group;
    for (intake::IncomingBatch& batch : DecodeAll(recording)) {
      group.emplace_back(std::move(batch)).SetSession(session);
      if (group.size() == 10) {
        auto outcomes = (*writer)->Commit(group);
        TRIBUTARY_CHECK(outcomes.ok() && !outcomes->back().need_dictionary);
        group.clear();
      }
    }
    TRIBUTARY_CHECK(group.empty() || (*writer)->Commit(group).ok());
    state.PauseTiming();
    writer->reset();
    store->reset();
    state.ResumeTiming();
  }
  std::filesystem::remove_all(directory);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(recording.samples));
}
BENCHMARK(DecodeAndCommit)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
