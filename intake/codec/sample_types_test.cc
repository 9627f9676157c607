// Sample types in batches: the meaning of their numbers, and their part of the accounting.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <tuple>

#include "intake/codec/codec_testing.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

absl::StatusOr<IncomingBatch> DecodeTypes(const std::vector<std::tuple<int, std::string, std::string>>& types,
                                          uint8_t aggregation = 0) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Batch>();
  root.initDefinitions().setGeneration(1);
  auto list = root.initSampleTypes(static_cast<unsigned>(types.size()));
  for (unsigned i = 0; i < types.size(); ++i) {
    const auto& [number, name, unit] = types[i];
    list[i].setNumber(static_cast<uint8_t>(number));
    list[i].setName(name);
    list[i].setUnit(unit);
    list[i].setAggregation(aggregation);
  }
  return BatchDecoder(1).Decode(MessageType::kBatch, 1, ToPayload(message));
}

TEST(BatchCodec, CarriesTypesWithTheirMeaning) {
  Batch batch{.sequence = 1, .dictionary = std::make_shared<Dictionary>()};
  batch.samples = {Sample{.type = static_cast<SampleType>(200)}, Sample{.type = static_cast<SampleType>(9)}};
  batch.sample_types = {{static_cast<SampleType>(200), {"alloc_space", "bytes"}},
                        {static_cast<SampleType>(201), {"inuse_space", "bytes", Aggregation::kLast}}};
  BatchDecoder decoder(1);
  Dictionary other;
  const IncomingBatch in = DecodeAll(BatchEncoder(1).Encode(batch), decoder, other);
  EXPECT_EQ(in.sample_types, batch.sample_types);
  EXPECT_FALSE(in.sample_types[0].info.is_gauge());
  EXPECT_TRUE(in.sample_types[1].info.is_gauge());
  EXPECT_EQ(in.samples, Rounded(batch.samples));
  EXPECT_EQ(in.unknown_values, 1u) << "9 is nobody's";
}

TEST(BatchDecoder, RefusesInvalidTypes) {
  using Types = std::vector<std::tuple<int, std::string, std::string>>;
  const std::string longest(kSampleTypeBytesMax, 'x');
  EXPECT_TRUE(DecodeTypes({{3, longest, longest}, {255, "b", "c"}}).ok());
  EXPECT_TRUE(DecodeTypes({{3, "a", "b"}}, 1).ok());
  EXPECT_EQ(DecodeTypes({{3, "a", "b"}}, 2).status().code(), absl::StatusCode::kInvalidArgument);
  for (const Types& types :
       {Types{{1, "mine", "bytes"}}, Types{{0, "mine", "bytes"}}, Types{{3, "", "bytes"}}, Types{{3, "mine", ""}},
        Types{{3, longest + "x", "bytes"}}, Types{{3, "mine", longest + "x"}}, Types{{3, "a:b", "bytes"}},
        Types{{3, "mine", "a\n"}}, Types{{3, "\xff", "bytes"}}, Types{{3, "a", "b"}, {3, "a", "b"}},
        Types(kSampleTypesMax + 1, {3, "a", "b"})}) {
    EXPECT_EQ(DecodeTypes(types).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(BatchCodec, CarriesAccountingOfEachType) {
  constexpr auto kMine = static_cast<SampleType>(200);
  Batch batch{.dictionary = std::make_shared<Dictionary>()};
  batch.sample_types = {{kMine, {"alloc_space", "bytes"}}};
  batch.accounting.captured = 100;
  batch.accounting.captured.Add(SampleType::kOffCpu, 20);
  batch.accounting.captured.Add(kMine, 7);
  batch.accounting.LostFor(LossReason::kRingFull) = 3;
  batch.accounting.LostFor(LossReason::kRingFull).Add(kMine, 2);
  batch.accounting.LostFor(LossReason::kInDoubt).Add(SampleType::kOffCpu, 5);
  batch.accounting.captured.AddEvents(1'000);
  batch.accounting.LostFor(LossReason::kNotTaken).AddEvents(30);
  batch.closes = {{.session_id = {1}, .captured = batch.accounting.captured}, {.session_id = {2}, .captured = 9}};
  BatchDecoder decoder(1);
  Dictionary other;
  const IncomingBatch in = DecodeAll(BatchEncoder(1).Encode(batch), decoder, other);
  EXPECT_EQ(in.accounting, batch.accounting);
  EXPECT_EQ(in.closes, batch.closes);
  EXPECT_EQ(in.unknown_values, 0u);
}

// Decodes a batch with counts of types: number, captured, lost in the ring; of 10 captured and 5 lost of all types.
absl::StatusOr<IncomingBatch> DecodeTypeCounts(const std::vector<std::array<uint64_t, 3>>& counts, bool of_closed) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Batch>();
  root.initDefinitions().setGeneration(1);
  root.setCaptured(10);
  root.initLost(1).set(0, 5);
  auto closed = root.initCloses(1)[0];
  closed.setSessionId(capnp::Data::Reader(reinterpret_cast<const uint8_t*>("0123456789abcdef"), 16));
  closed.setCaptured(10);
  const auto count = static_cast<unsigned>(counts.size());
  auto list = of_closed ? closed.initTypeCounts(count) : root.initTypeCounts(count);
  for (unsigned i = 0; i < count; ++i) {
    list[i].setNumber(static_cast<uint8_t>(counts[i][0]));
    list[i].setCaptured(counts[i][1]);
    list[i].initLost(1).set(0, counts[i][2]);
  }
  return BatchDecoder(1).Decode(MessageType::kBatch, 1, ToPayload(message));
}

TEST(BatchDecoder, RefusesInconsistentCountsOfTypes) {
  EXPECT_TRUE(DecodeTypeCounts({{2, 6, 2}, {200, 4, 3}}, false).ok());
  EXPECT_TRUE(DecodeTypeCounts({{2, 6, 0}, {200, 4, 0}}, true).ok());
  constexpr uint64_t kMost = uint64_t{1} << 48;
  EXPECT_TRUE(DecodeTypeCounts({{0, kMost, kMost}}, false).ok()) << "the totals do not include process events";
  EXPECT_TRUE(DecodeTypeCounts({{0, kMost, 0}}, true).ok());
  using Counts = std::vector<std::array<uint64_t, 3>>;
  for (const Counts& counts :
       {Counts{{1, 6, 2}}, Counts{{0, 6, 2}, {0, 1, 1}}, Counts{{0, kMost + 1, 0}}, Counts{{2, 6, 2}, {2, 1, 1}},
        Counts{{2, 0, 0}, {2, 0, 0}}, Counts{{2, 11, 0}}, Counts{{2, 6, 0}, {3, 5, 0}}, Counts{{2, UINT64_MAX, 0}}}) {
    EXPECT_EQ(DecodeTypeCounts(counts, false).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DecodeTypeCounts(counts, true).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(DecodeTypeCounts({{2, 6, 3}, {3, 1, 3}}, false).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeTypeCounts({{2, 0, UINT64_MAX}}, false).status().code(), absl::StatusCode::kInvalidArgument);
  Counts many;
  for (uint64_t i = 0; i <= kSampleTypesMax; ++i) many.push_back({2 + i, 0, 0});
  EXPECT_EQ(DecodeTypeCounts(many, false).status().code(), absl::StatusCode::kInvalidArgument);
  many.back()[0] = 0;
  EXPECT_TRUE(DecodeTypeCounts(many, false).ok()) << "process events are no sample type";
}

TEST(BatchDecoder, RefusesCountsThatNoNodeCanHave) {
  const auto decode = [](uint64_t captured, uint64_t lost, uint64_t closed) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Batch>();
    root.initDefinitions().setGeneration(1);
    root.setCaptured(captured);
    root.initLost(1).set(0, lost);
    auto session = root.initCloses(1)[0];
    session.setSessionId(capnp::Data::Reader(reinterpret_cast<const uint8_t*>("0123456789abcdef"), 16));
    session.setCaptured(closed);
    return BatchDecoder(1).Decode(MessageType::kBatch, 1, ToPayload(message)).status();
  };
  constexpr uint64_t kMost = uint64_t{1} << 48;
  EXPECT_TRUE(decode(kMost, kMost, kMost).ok());
  EXPECT_EQ(decode(kMost + 1, 0, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decode(0, kMost + 1, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decode(0, 0, kMost + 1).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tributary::intake
