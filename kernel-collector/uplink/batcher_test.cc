#include "kernel-collector/uplink/batcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernel-collector/processes/fakes_testing.h"
#include "profile/eviction.h"

namespace tributary {
namespace {

class FakeSink : public BatchSink {
 public:
  absl::Status Take(Batch batch) override {
    batches.push_back(std::move(batch));
    return answer;
  }
  std::vector<Batch> batches;
  absl::Status answer;
};

class BatcherTest : public testing::Test {
 protected:
  BatcherTest() {
    file.id = BuildId("file");
    file.path = "/bin/f";
    run.pid = Pid{5};
    run.start_time_ns = 7;
    run.comm = "prog";
  }
  void Add(Batcher& batcher, int64_t time, const std::vector<uint64_t>& root_first, int32_t tid = 5) {
    ResolvedStack stack;
    for (uint64_t address : root_first) stack.frames.push_back({FrameKind::kNative, false, &file, address});
    batcher.Add({.time = MonotonicNs{time}, .tid = Tid{tid}, .thread_name = "t", .value = 9}, run, stack,
                [&] { return accounting; });
  }

  void AddEvent(Batcher& batcher, int64_t time, std::string_view name, uint32_t events = 1) {
    batcher.AddEvent({.time = MonotonicNs{time},
                      .kind = events == 1 ? ProcessEventKind::kExec : ProcessEventKind::kSum,
                      .process = {Pid{7}, 70},
                      .parent = Pid{1},
                      .uid = 1000,
                      .name = name,
                      .names = {.executable_path = "/bin/f", .container_id = "c", .cgroup_path = "/c"},
                      .events = events},
                     [&] { return accounting; });
  }

  FakeClock clock;
  FakeSink sink;
  CodeFile file;
  ProcessRun run;
  Accounting accounting{.captured = 3};
};

TEST_F(BatcherTest, StacksShareTheirRoots) {
  Batcher batcher(sink, clock);
  Add(batcher, 2, {1, 2, 3});
  Add(batcher, 1, {1, 2, 4});
  Add(batcher, 3, {1, 2});
  batcher.Flush(accounting);
  const Batch& batch = sink.batches.at(0);
  EXPECT_EQ(batch.dictionary->node_count(), 5u);  // the root and four
  ASSERT_EQ(batch.samples.size(), 3u);
  EXPECT_EQ(batch.samples[0].time, MonotonicNs{1});  // in order of time
  EXPECT_EQ(batch.dictionary->node(batch.samples[0].node).parent, batch.samples[2].node);
  EXPECT_EQ(batch.dictionary->node(batch.samples[1].node).parent, batch.samples[2].node);
  EXPECT_EQ(batch.samples[0].value, 9u);
  EXPECT_EQ(batch.accounting.captured, 3u);
  EXPECT_EQ(batch.clock.unix, clock.Unix());
}

TEST_F(BatcherTest, NumbersBatchesAndKeepsTheDictionary) {
  Batcher batcher(sink, clock);
  Add(batcher, 1, {1});
  batcher.Flush(accounting);
  Add(batcher, 2, {1});
  batcher.Flush(accounting);
  batcher.Flush(accounting);
  ASSERT_EQ(sink.batches.size(), 3u);
  EXPECT_EQ(sink.batches[2].sequence, 3u);
  EXPECT_TRUE(sink.batches[2].samples.empty());
  EXPECT_EQ(sink.batches[0].dictionary, sink.batches[1].dictionary);
  EXPECT_EQ(sink.batches[0].samples[0].node, sink.batches[1].samples[0].node);
  EXPECT_EQ(batcher.samples_sent(), 2u);
}

// Receivers refuse deeper stacks.
TEST_F(BatcherTest, KeepsTheInnermostFramesOfAStackThatIsTooDeep) {
  Batcher batcher(sink, clock, {.stack_depth_max = 3});
  Add(batcher, 1, {1, 2, 3});
  Add(batcher, 2, {1, 2, 3, 4, 5});
  batcher.Flush(accounting);
  const Batch& batch = sink.batches.at(0);
  const Dictionary& dictionary = *batch.dictionary;
  EXPECT_EQ(batch.samples.at(0).ending, Ending::kUnknown) << "the ending of the walk";
  EXPECT_EQ(batch.samples.at(1).ending, Ending::kTruncatedDepth);
  std::vector<uint64_t> addresses;
  for (NodeRef n = batch.samples[1].node; n.value != 0; n = dictionary.node(n).parent) {
    addresses.push_back(dictionary.frame(dictionary.node(n).frame).address);
  }
  EXPECT_EQ(addresses, (std::vector<uint64_t>{5, 4, 3}));
}

TEST_F(BatcherTest, StartsANewDictionaryBeforeAStackWouldBeCut) {
  Batcher batcher(sink, clock, {.nodes_max = 100});
  for (uint64_t i = 0; i < 50; ++i) Add(batcher, static_cast<int64_t>(i), {i * 10 + 1, i * 10 + 2, i * 10 + 3});
  batcher.Flush(accounting);
  EXPECT_GT(sink.batches.size(), 1u);
  size_t samples = 0;
  for (const Batch& batch : sink.batches) {
    EXPECT_LE(batch.dictionary->node_count(), 100u);
    for (const Sample& sample : batch.samples) {
      ++samples;
      size_t depth = 0;
      for (NodeRef n = sample.node; n.value != 0; n = batch.dictionary->node(n).parent) ++depth;
      EXPECT_EQ(depth, 3u);
      const Thread& thread = batch.dictionary->thread(sample.thread);
      EXPECT_EQ(batch.dictionary->process(thread.process).key.pid, Pid{5});
    }
  }
  EXPECT_EQ(samples, 50u);
  EXPECT_NE(sink.batches.front().dictionary, sink.batches.back().dictionary);
}

TEST_F(BatcherTest, KeepsUsedEntriesWhenTheDictionaryIsFull) {
  Batcher batcher(sink, clock, {.nodes_max = 100});
  for (uint64_t i = 0; i < 200; ++i) {
    Add(batcher, static_cast<int64_t>(2 * i), {1, 2, 3});  // always in use
    Add(batcher, static_cast<int64_t>(2 * i + 1), {i * 10 + 11, i * 10 + 12});
    batcher.Flush(accounting);
  }
  EXPECT_GT(batcher.evictions(), 5u);
  std::shared_ptr<const Dictionary> last;
  for (const Batch& batch : sink.batches) {
    if (last != nullptr && batch.dictionary != last) {
      ASSERT_NE(batch.dictionary->derivation(), nullptr);
      EXPECT_EQ(batch.dictionary->derivation()->from.lock(), last);
      EXPECT_EQ(batch.dictionary->node(NodeRef{3}).parent, NodeRef{2}) << "the first stack is still the first";
    }
    last = batch.dictionary;
  }
}

TEST_F(BatcherTest, KeepsEveryStackUnchanged) {
  Batcher batcher(sink, clock, {.nodes_max = 500});
  std::mt19937 random(1);
  auto draw = [&](uint32_t below) { return random() % below; };
  std::vector<std::vector<uint64_t>> stacks;
  std::vector<uint64_t> stack;
  for (int64_t i = 0; i < 5000; ++i) {
    if (draw(10) == 0) stack.clear();
    stack.resize(draw(static_cast<uint32_t>(stack.size()) + 1));  // outer frames stay
    while (stack.size() < 12 && draw(3) != 0) stack.push_back(draw(5));
    Add(batcher, i, stack, static_cast<int32_t>(draw(40)));
    stacks.push_back(stack);
    if (draw(50) == 0) batcher.Flush(accounting);
  }
  batcher.Flush(accounting);
  EXPECT_GT(batcher.evictions(), 5u);
  size_t next = 0;
  for (const Batch& batch : sink.batches) {
    for (const Sample& sample : batch.samples) {
      std::vector<uint64_t> got;
      for (NodeRef n = sample.node; n.value != 0; n = batch.dictionary->node(n).parent) {
        got.insert(got.begin(), batch.dictionary->frame(batch.dictionary->node(n).frame).address);
      }
      EXPECT_EQ(got, stacks.at(next++));
    }
  }
  EXPECT_EQ(next, stacks.size());
}

TEST_F(BatcherTest, StartsEmptyIfAnEvictionFreesTooLittle) {
  Batcher batcher(sink, clock, {.nodes_max = 40});
  std::vector<uint64_t> deep(30);
  for (size_t i = 0; i < deep.size(); ++i) deep[i] = i + 1;
  Add(batcher, 1, deep);
  for (uint64_t& address : deep) address += 100;
  Add(batcher, 2, deep);
  batcher.Flush(accounting);
  EXPECT_EQ(batcher.evictions(), 0u);
  EXPECT_EQ(sink.batches.back().dictionary->derivation(), nullptr);
}

TEST_F(BatcherTest, FlushesAFullBatchEarly) {
  Batcher batcher(sink, clock);
  for (size_t i = 0; i <= Batcher::kSamplesMax; ++i) Add(batcher, 1, {1});
  ASSERT_EQ(sink.batches.size(), 1u);
  EXPECT_EQ(sink.batches[0].samples.size(), Batcher::kSamplesMax);
  EXPECT_EQ(batcher.samples_waiting(), 1u);
}

TEST_F(BatcherTest, PutsEventsAndSamplesIntoOneBatchInOrderOfTime) {
  Batcher batcher(sink, clock);
  Add(batcher, 5, {1});
  AddEvent(batcher, 9, "b");
  AddEvent(batcher, 3, "a", 20);
  EXPECT_EQ(batcher.events_sent(), 0u);
  batcher.Flush(accounting);
  const Batch& batch = sink.batches.at(0);
  const Dictionary& d = *batch.dictionary;
  ASSERT_EQ(batch.events.size(), 2u);
  EXPECT_EQ(batch.samples.size(), 1u);
  EXPECT_EQ(d.string(batch.events[0].name), "a");
  EXPECT_EQ(d.string(batch.events[1].name), "b");
  EXPECT_EQ(d.string(batch.events[1].executable_path), "/bin/f");
  EXPECT_EQ(d.string(batch.events[1].container_id), "c");
  EXPECT_EQ(d.string(batch.events[1].cgroup_path), "/c");
  EXPECT_EQ(batch.events[1].start_time_ns, 70);
  EXPECT_EQ(d.process_count(), 2u);  // none, and that of the sample
  EXPECT_EQ(batcher.events_sent(), 21u);
  EXPECT_EQ(batcher.samples_sent(), 1u);
}

TEST_F(BatcherTest, FlushesABatchThatIsFullOfEventsEarly) {
  Batcher batcher(sink, clock);
  for (size_t i = 0; i <= kProcessEventsPerBatchMax; ++i) AddEvent(batcher, 1, "a");
  ASSERT_EQ(sink.batches.size(), 1u);
  EXPECT_EQ(sink.batches[0].events.size(), kProcessEventsPerBatchMax);
  EXPECT_EQ(sink.batches[0].accounting.captured, accounting.captured);
  batcher.Flush(accounting);
  EXPECT_EQ(sink.batches[1].events.size(), 1u);
}

TEST_F(BatcherTest, NamesOfEventsAreNeverCutByAFullDictionary) {
  Batcher batcher(sink, clock, {.strings_max = 40});
  for (int i = 0; i < 500; ++i) {
    AddEvent(batcher, i, std::to_string(i));
    if (i % 7 == 0) Add(batcher, i, {1, 2});
  }
  batcher.Flush(accounting);
  EXPECT_GT(sink.batches.size(), 10u);
  int next = 0;
  for (const Batch& batch : sink.batches) {
    EXPECT_LE(batch.dictionary->string_count(), 40u);
    for (const ProcessEvent& event : batch.events) {
      EXPECT_EQ(batch.dictionary->string(event.name), std::to_string(next++));
      EXPECT_EQ(batch.dictionary->string(event.cgroup_path), "/c");
    }
  }
  EXPECT_EQ(next, 500);
}

TEST_F(BatcherTest, TextsOfEventsDoNotFillTheMemory) {
  Batcher batcher(sink, clock);
  Add(batcher, 0, {1, 2, 3});
  for (int i = 0; i < 10'000; ++i) AddEvent(batcher, i, std::string(4000, 'x') + std::to_string(i));
  Add(batcher, 10'000, {1, 2, 3});
  batcher.Flush(accounting);
  size_t events = 0;
  for (const Batch& batch : sink.batches) {
    const Dictionary& d = *batch.dictionary;
    size_t bytes = 0;
    for (uint32_t i = 0; i < d.string_count(); ++i) bytes += d.string(StringRef{i}).size();
    EXPECT_LE(bytes, Batcher::kEventTextBytesMax + (64u << 10));
    events += batch.events.size();
  }
  EXPECT_EQ(events, 10'000u);
  EXPECT_EQ(batcher.evictions(), 2u);
  EXPECT_EQ(sink.batches.back().dictionary->node_count(), 4u) << "the stacks stay";
}

// The longest names, with control bytes and without UTF-8.
TEST_F(BatcherTest, KeepsTheBytesOfNames) {
  using std::string_view_literals::operator""sv;
  Batcher batcher(sink, clock);
  AddEvent(batcher, 1, "\x1b[2J\n\0\xff"sv);
  AddEvent(batcher, 2, std::string(10'000, 'x'));
  batcher.Flush(accounting);
  const Batch& batch = sink.batches.at(0);
  EXPECT_EQ(batch.dictionary->string(batch.events[0].name), "\x1b[2J\n\0\xff"sv);
  EXPECT_EQ(batch.dictionary->string(batch.events[1].name).size(), batch.dictionary->limits().string_bytes_max);
}

TEST_F(BatcherTest, DefinesAChangedProcessAgain) {
  Batcher batcher(sink, clock);
  Add(batcher, 1, {1});
  Add(batcher, 2, {1});
  run.container_id = "c";
  run.interned_generation = 0;
  Add(batcher, 3, {1});
  auto program = std::make_shared<CodeFile>();
  run.executable = program;  // not read yet: its id is unknown
  Add(batcher, 4, {1});
  program->id = BuildId("program");
  Add(batcher, 5, {1});
  batcher.Flush(accounting);
  const Batch& batch = sink.batches.at(0);
  const Dictionary& d = *batch.dictionary;
  EXPECT_EQ(d.process_count(), 4u);  // none, and three
  EXPECT_EQ(batch.samples[0].thread, batch.samples[1].thread);
  EXPECT_EQ(batch.samples[2].thread, batch.samples[3].thread);
  const Process& last = d.process(d.thread(batch.samples[4].thread).process);
  EXPECT_EQ(d.executable(last.executable).id, BuildId("program"));
  EXPECT_EQ(d.string(last.container_id), "c");
}

TEST_F(BatcherTest, ContinuesAfterASinkRefusesABatch) {
  sink.answer = absl::ResourceExhaustedError("full");
  Batcher batcher(sink, clock);
  Add(batcher, 1, {1});
  batcher.Flush(accounting);
  Add(batcher, 2, {1});
  batcher.Flush(accounting);
  EXPECT_EQ(sink.batches.back().sequence, 2u);
}

}  // namespace
}  // namespace tributary
