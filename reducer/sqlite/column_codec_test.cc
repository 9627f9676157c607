#include "reducer/sqlite/column_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

namespace tributary::store {
namespace {

std::vector<StoredSample> RandomSamples(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<StoredSample> samples;
  int64_t time = 1'700'000'000'000'000'000;
  for (size_t i = 0; i < count; ++i) {
    time += static_cast<int64_t>(random() % 50) * 100'000;
    StoredSample sample;
    sample.time_ns = time;
    sample.thread = static_cast<uint32_t>(random() % 20);
    sample.process = sample.thread / 3;
    sample.node = static_cast<uint32_t>(random());
    sample.count = 1 + random() % 2;
    sample.value = random() % 5 == 0 ? random() : 52'631'579;
    sample.cpu = static_cast<uint16_t>(random() % 64);
    sample.ending = static_cast<Ending>(random() % kEndingCount);
    samples.push_back(sample);
  }
  return samples;
}

TEST(ColumnCodec, SamplesRoundTrip) {
  for (size_t count : {0, 1, 2, 100, 5000}) {
    const std::vector<StoredSample> samples = RandomSamples(count, count);
    SampleColumns columns;
    ASSERT_TRUE(DecodeSamples(EncodeSamples(samples), &columns).ok());
    ASSERT_EQ(columns.times.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(columns.times[i].value, samples[i].time_ns);
      EXPECT_EQ(columns.processes[i].value, samples[i].process);
      EXPECT_EQ(columns.threads[i].value, samples[i].thread);
      EXPECT_EQ(columns.nodes[i].value, samples[i].node);
      EXPECT_EQ(columns.values[i], samples[i].value);
      EXPECT_EQ(columns.counts[i], samples[i].count);
      EXPECT_EQ(columns.endings[i], samples[i].ending);
      EXPECT_EQ(columns.cpus[i], samples[i].cpu);
    }
  }
}

TEST(ColumnCodec, WeightsOfThreadsAreTheSumsOfTheirSamples) {
  for (const uint32_t threads : {1u, 20u, 128u, 129u, 2000u}) {
    for (const size_t count : {0, 1, 100, 5000}) {
      std::vector<StoredSample> samples = RandomSamples(count, count);
      std::map<std::pair<uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>> expected;
      for (size_t i = 0; i < samples.size(); ++i) {
        samples[i].thread = static_cast<uint32_t>(i * i) % threads;
        samples[i].count += i % 3 == 0 ? 4'000'000'000u : 0;  // a sum needs more than 32 bits
        auto& [value, n] = expected[{samples[i].thread, samples[i].process}];
        value += samples[i].value;
        n += samples[i].count;
      }
      ThreadWeights weights;
      ASSERT_TRUE(DecodeThreadWeights(EncodeSamples(samples), &weights).ok());
      ASSERT_EQ(weights.threads.size(), expected.size());
      for (size_t i = 0; i < weights.threads.size(); ++i) {
        const auto& [value, n] = expected.at({weights.threads[i].value, weights.processes[i].value});
        EXPECT_EQ(weights.values[i], value);
        EXPECT_EQ(weights.counts[i], n);
      }
    }
  }
}

// Two samples as stored, byte for byte, by the release before the endings from no_table on.
TEST(ColumnCodec, ChunksOfEarlierReleasesStayReadable) {
  std::vector<StoredSample> samples(2);
  samples[0] = {.time_ns = 100, .process = 1, .thread = 2, .node = 3, .count = 1, .value = 7, .cpu = 4};
  samples[0].ending = Ending::kNoMapping;
  samples[1] = samples[0];
  samples[1].ending = Ending::kComplete;
  const std::string stored(
      "\x01\x02\xc8\x01\x01\x00\x01\x04\x02\x00\x00\x06\x00\x0e\x02\x02\x02\x0a\x01\x07\x01\x04\x04", 23);
  EXPECT_EQ(EncodeSamples(samples), stored);
  SampleColumns columns;
  ASSERT_TRUE(DecodeSamples(stored, &columns).ok());
  EXPECT_EQ(columns.endings, (std::vector<Ending>{Ending::kNoMapping, Ending::kComplete}));
}

TEST(ColumnCodec, EndingsOfLaterReleasesAreUnknown) {
  std::vector<StoredSample> samples(3);
  for (StoredSample& sample : samples) sample.count = 1;
  samples[0].ending = static_cast<Ending>(kEndingCount);
  samples[1].ending = static_cast<Ending>(255);
  samples[2].ending = Ending::kStaleMapping;
  SampleColumns columns;
  ASSERT_TRUE(DecodeSamples(EncodeSamples(samples), &columns).ok());
  EXPECT_EQ(columns.endings, (std::vector<Ending>{Ending::kUnknown, Ending::kUnknown, Ending::kStaleMapping}));
}

// The session table's counters of a release with six endings.
TEST(ColumnCodec, CountersMayGrow) {
  const uint64_t six[6] = {1, 200, 3, 4, 5, 6};
  uint64_t endings[kEndingCount];
  std::fill(std::begin(endings), std::end(endings), 99);
  DecodeCounters(EncodeCounters(six), endings);
  for (size_t i = 0; i < kEndingCount; ++i) EXPECT_EQ(endings[i], i < 6 ? six[i] : 0u);
}

TEST(ColumnCodec, TriePiecesContinueEachOther) {
  Trie whole = EmptyTrie();
  std::mt19937_64 random(3);
  std::vector<std::string> pieces;
  for (int piece = 0; piece < 5; ++piece) {
    const size_t nodes = whole.parents.size(), frames = whole.frame_rows.size();
    for (int i = 0; i < 200; ++i) {
      const std::array kinds = {FrameKind::kUnknown, FrameKind::kNative, FrameKind::kKernel, FrameKind::kGo};
      FrameRow row{kinds[random() % kinds.size()], random() % 2 == 0, ExecutableNo{static_cast<uint32_t>(random() % 9)},
                   random()};
      if (piece % 2 == 1) row.position = static_cast<uint32_t>(random());
      if (piece == 3) row.name = StringId{static_cast<uint32_t>(random() % 4)};
      whole.frame_rows.push_back(row);
      whole.parents.push_back(NodeNo{static_cast<uint32_t>(random() % whole.parents.size())});
      whole.frames.push_back(static_cast<uint32_t>(random() % whole.frame_rows.size()));
    }
    pieces.push_back(EncodeTriePiece(whole, nodes, frames));
  }
  Trie read = EmptyTrie();
  for (const std::string& piece : pieces) ASSERT_TRUE(AppendTriePiece(piece, &read).ok());
  EXPECT_EQ(read.parents, whole.parents);
  EXPECT_EQ(read.frames, whole.frames);
  EXPECT_EQ(read.frame_rows, whole.frame_rows);
  EXPECT_EQ(pieces[0][0], 1) << "without anything new a piece is what earlier releases read";
}

TEST(ColumnCodec, RefusesEveryTruncation) {
  const std::string samples = EncodeSamples(RandomSamples(1, 50));
  SampleColumns columns;
  for (size_t size = 0; size < samples.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeSamples(samples.substr(0, size), &columns))) << size;
  }
  ThreadWeights weights;  // their columns come before the endings and CPUs, which take at least 52 bytes
  for (size_t size = 0; size < samples.size() / 2; ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeThreadWeights(samples.substr(0, size), &weights))) << size;
  }
  EXPECT_FALSE(DecodeSamples(samples + "x", &columns).ok());
}

TEST(ColumnCodec, SurvivesFlippedBytes) {
  const std::string good = EncodeSamples(RandomSamples(2, 50));
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random());
    SampleColumns columns;
    ThreadWeights weights;
    if (DecodeThreadWeights(bad, &weights).ok()) {
      EXPECT_LE(weights.processes.size(), bad.size());
      EXPECT_EQ(weights.processes.size(), weights.counts.size());
    }
    if (!DecodeSamples(bad, &columns).ok()) continue;
    EXPECT_LE(columns.times.size(), bad.size());
    EXPECT_EQ(columns.times.size(), columns.cpus.size());
  }
}

TEST(ColumnCodec, ReadsTheKnownCountersOfAnotherRelease) {
  const uint64_t wrote[] = {1, 300, 5};
  uint64_t more[5] = {9, 9, 9, 9, 9}, fewer[2] = {};
  DecodeCounters(EncodeCounters(wrote), more);
  DecodeCounters(EncodeCounters(wrote), fewer);
  EXPECT_EQ(std::vector<uint64_t>(more, more + 5), (std::vector<uint64_t>{1, 300, 5, 0, 0}));
  EXPECT_EQ(std::vector<uint64_t>(fewer, fewer + 2), (std::vector<uint64_t>{1, 300}));
}

}  // namespace
}  // namespace tributary::store
