#include <gtest/gtest.h>

#include <random>

#include "base/status.h"
#include "base/zstd.h"
#include "intake/symbols/symbol_receiver.h"
#include "intake/symbols/symbol_sender.h"
#include "intake/testing/reducer_testing.h"
#include "intake/testing/relay_testing.h"

// An interrupted upload continues where it was: on the next connection, or from another node.

namespace tributary::intake {
namespace {

ExecutableId Id(std::string_view bytes) { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, bytes); }

std::string Noise(size_t size, uint64_t seed = 1) {
  std::string out(size, '\0');
  std::mt19937_64 random(seed);
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

// Both ends over real sockets, with a relay between them that counts and cuts.
class SymbolResumeTest : public IntakeTest {
 protected:
  static constexpr size_t kBytes = 1'000'000;  // 16 chunks

  void SetUp() override {
    server_options_.symbol_parts = &parts_;
    StartServer();
    reducer_port_ = server_options_.port;
    relay_ = std::make_unique<TestRelay>(loop_, reducer_port_);
    StartNode();
  }
  // Starts another node in the place of the previous one.
  void StartNode() {
    client_.reset();
    ++client_options_.session.session_id[0];
    server_options_.port = relay_->port();
    StartClient();
    server_options_.port = reducer_port_;
    RunUntil([this] { return client_->connected(); }, "connected");
  }
  // Requests the table from the connected node, which answers.
  void Upload(const PackedTable& table) {
    const size_t asked = asked_.size();
    RunUntil([this] { return server_->live() != nullptr && client_->connected(); }, "connected");
    server_->live()->NeedSymbols({id_});
    RunUntil([&] { return asked_.size() > asked; }, "asked");
    client_->SendSymbols(id_, table);
  }
  void RunUntilClosed(size_t times) {
    RunUntil([&] { return store_.closed.size() >= times; }, "closed");
  }
  // Uploads the rest of a table of which the reducer has `held` bytes. Expects that only the rest is sent, and that the
  // table is correct.
  void ExpectOnlyTheRest(const PackedTable& table, uint64_t held) {
    relay_->Forget();
    const uint64_t taken = Count("tributary_intake_symbol_bytes_total");
    const size_t had = store_.symbols.size();
    Upload(table);
    RunUntil([&] { return store_.symbols.size() > had; }, "uploaded");
    ASSERT_TRUE(store_.symbols.back().second.ok()) << store_.symbols.back().second.status();
    EXPECT_TRUE(*store_.symbols.back().second == table_);
    const TestRelay::Carried carried = relay_->CarriedOf(id_);
    EXPECT_EQ(carried.first_offset, held);
    EXPECT_EQ(carried.bytes, table.stored_bytes() - held);
    EXPECT_EQ(Count("tributary_intake_symbol_bytes_total") - taken, table.stored_bytes() - held);
    EXPECT_EQ(parts_.bytes(), 0u);
  }
  uint64_t Event(const char* event) {
    return metrics_.AddCounter("tributary_intake_symbol_uploads_total", "", {{"event", event}}).value();
  }

  SymbolParts parts_{{}, metrics_};
  uint16_t reducer_port_ = 0;
  std::unique_ptr<TestRelay> relay_;
  const ExecutableId id_ = Id("executable");
  const std::string table_ = Noise(kBytes);
  const PackedTable packed_ = PackedTable::Of(table_);
};

TEST_F(SymbolResumeTest, AfterACutAtAnyChunkOnlyTheRestIsSent) {
  size_t closed = 0;
  for (uint64_t chunks : {0, 1, 7, 15}) {
    const uint64_t held = chunks * kSymbolChunkBytes;
    relay_->cut_in = [&](const SymbolChunk& chunk) { return chunk.offset == held; };
    Upload(packed_);
    RunUntilClosed(++closed);
    relay_->cut_in = nullptr;
    EXPECT_EQ(parts_.Offer(id_).offset, held);
    ExpectOnlyTheRest(packed_, held);
  }
  EXPECT_EQ(Event("begun"), 4u);  // once for each table: nothing arrived of the very first attempt
  EXPECT_EQ(Event("resumed"), 3u);
  EXPECT_EQ(Event("whole"), 4u);
}

TEST_F(SymbolResumeTest, SuccessiveCutsAddUp) {
  uint64_t held = 0;
  for (size_t cut = 1; cut <= 5; ++cut) {
    relay_->cut_in = [&, at = held + 2 * kSymbolChunkBytes](const SymbolChunk& chunk) { return chunk.offset == at; };
    Upload(packed_);
    RunUntilClosed(cut);
    held += 2 * kSymbolChunkBytes;
    EXPECT_EQ(parts_.Offer(id_).offset, held);
  }
  relay_->cut_in = nullptr;
  ExpectOnlyTheRest(packed_, held);
  EXPECT_EQ(Event("begun"), 1u);
}

TEST_F(SymbolResumeTest, AfterTheReducerClosedOnlyTheRestIsSent) {
  Upload(packed_);
  RunUntil([&] { return Count("tributary_intake_symbol_bytes_total") >= 4 * kSymbolChunkBytes; }, "some came");
  server_->live()->Close({.reason = "the test says so"});
  const uint64_t held = Count("tributary_intake_symbol_bytes_total");
  EXPECT_EQ(parts_.Offer(id_).offset, held) << "the session holds nothing while it lingers";
  RunUntilClosed(1);
  ExpectOnlyTheRest(packed_, held);
}

TEST_F(SymbolResumeTest, AnotherNodeContinuesAfterANodeDied) {
  Upload(packed_);
  RunUntil([&] { return Count("tributary_intake_symbol_bytes_total") >= 4 * kSymbolChunkBytes; }, "some came");
  client_.reset();
  RunUntilClosed(1);
  const uint64_t held = parts_.Offer(id_).offset;
  EXPECT_GE(held, 4 * kSymbolChunkBytes);
  EXPECT_LT(held, packed_.stored_bytes());
  StartNode();
  ExpectOnlyTheRest(packed_, held);
  EXPECT_EQ(Event("begun"), 1u);
  EXPECT_EQ(Event("whole"), 1u);
}

TEST_F(SymbolResumeTest, NodeWithOtherBytesStartsFromTheBeginning) {
  parts_.Keep(id_, {packed_.stored_bytes(), kBytes, packed_.key(), packed_.Read(0, 100'000).value()});
  const std::string other = Noise(kBytes, 2);
  Upload(PackedTable::Of(other));
  RunUntil([&] { return !store_.symbols.empty(); }, "uploaded");
  ASSERT_TRUE(store_.symbols.back().second.ok()) << store_.symbols.back().second.status();
  EXPECT_TRUE(*store_.symbols.back().second == other);
  EXPECT_EQ(relay_->CarriedOf(id_).first_offset, 0u);
  EXPECT_EQ(parts_.bytes(), 0u) << "nobody needs it now";
}

// Such a collector sends no key and does not know of parts.
TEST_F(SymbolResumeTest, CollectorOfAnEarlierReleaseAlwaysStartsFromTheBeginning) {
  PackedTable earlier = packed_;
  earlier.set_key(0);
  parts_.Keep(id_, {packed_.stored_bytes(), kBytes, packed_.key(), packed_.Read(0, 100'000).value()});
  relay_->cut_in = [](const SymbolChunk& chunk) { return chunk.offset == 7 * kSymbolChunkBytes; };
  Upload(earlier);
  RunUntilClosed(1);
  EXPECT_EQ(parts_.Offer(id_).offset, 100'000u) << "nothing of it is kept";
  relay_->cut_in = nullptr;
  ExpectOnlyTheRest(earlier, 0);
}

TEST_F(SymbolResumeTest, SpoiledPartIsDroppedAndTheUploadStartsFromTheBeginning) {
  parts_.Keep(id_, {packed_.stored_bytes(), kBytes, packed_.key(), Noise(100'000, 3)});
  Upload(packed_);
  RunUntil([&] { return !store_.symbols.empty(); }, "uploaded");
  EXPECT_EQ(store_.symbols.back().second.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Event("spoiled"), 1u);
  EXPECT_EQ(parts_.bytes(), 0u);
  ExpectOnlyTheRest(packed_, 0);
  EXPECT_EQ(store_.hellos.size(), 1u) << "it was not this node's fault";
  EXPECT_EQ(Event("whole"), 1u);
}

TEST_F(SymbolResumeTest, UploadStartsFromTheBeginningIfThePartIsGone) {
  parts_.Keep(id_, {packed_.stored_bytes(), kBytes, packed_.key(), packed_.Read(0, 100'000).value()});
  server_->live()->NeedSymbols({id_});
  parts_.Drop(id_);
  RunUntil([&] { return asked_.size() == 1; }, "asked");
  client_->SendSymbols(id_, packed_);
  RunUntil([&] { return !store_.symbols.empty(); }, "answered");
  EXPECT_EQ(store_.symbols.back().second.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Event("lost"), 1u);
  RunUntil([&] { return relay_->CarriedOf(id_).ended == 1; }, "the rest was sent for nothing");
  ExpectOnlyTheRest(packed_, 0);
  EXPECT_GT(Refused("unasked_symbols"), 0u);
  EXPECT_EQ(store_.hellos.size(), 1u);
}

// All bytes came from this node, so it breaks the protocol.
TEST_F(SymbolResumeTest, TableThatDoesNotMatchItsKeyEndsTheSession) {
  PackedTable wrong = packed_;
  wrong.set_key(wrong.key() + 1);
  Upload(wrong);
  RunUntilClosed(1);
  EXPECT_EQ(Refused("bad_message"), 1u);
  EXPECT_EQ(Event("spoiled"), 1u);
  EXPECT_EQ(parts_.bytes(), 0u);
  EXPECT_TRUE(store_.symbols.empty());
  ExpectOnlyTheRest(packed_, 0);
}

TEST_F(SymbolResumeTest, RequestsOfTheLastConnectionAreNotAnsweredOnTheNext) {
  server_->live()->NeedSymbols({id_});
  RunUntil([&] { return asked_.size() == 1; }, "asked");
  relay_->Cut(0);
  RunUntil([&] { return store_.hellos.size() == 2 && client_->connected(); }, "connected again");
  client_->SendSymbols(id_, packed_);
  Send(10);
  RunUntilStored(1);
  EXPECT_EQ(relay_->CarriedOf(id_).bytes, 0u);
  EXPECT_EQ(Refused("unasked_symbols"), 0u);
}

class ReceiverTest : public testing::Test {
 protected:
  static constexpr SymbolReceiver::Options kLimits{.stored_bytes_max = 1'000'000, .raw_bytes_max = 1'000'000};

  SymbolReceiver::Options WithParts() {
    SymbolReceiver::Options options = kLimits;
    options.parts = &parts_;
    return options;
  }
  SymbolChunk ChunkAt(uint64_t offset, size_t size) const {
    return {.id = Id("a"),
            .offset = offset,
            .total_bytes = packed_.stored_bytes(),
            .raw_bytes = packed_.raw_bytes(),
            .bytes = packed_.Read(offset, size).value(),
            .unavailable = {},
            .key = packed_.key()};
  }
  void KeepPart(size_t size) {
    parts_.Keep(Id("a"), {packed_.stored_bytes(), packed_.raw_bytes(), packed_.key(), packed_.Read(0, size).value()});
  }

  Metrics metrics_;
  SymbolParts parts_{{}, metrics_};
  const PackedTable packed_ = PackedTable::Of(Noise(10'000));
};

TEST_F(ReceiverTest, ContinuesOnlyAtTheOfferedPart) {
  const std::function<void(SymbolChunk&)> changes[] = {
      [](SymbolChunk& c) { ++c.offset; },      [](SymbolChunk& c) { --c.offset; },
      [](SymbolChunk& c) { ++c.total_bytes; }, [](SymbolChunk& c) { --c.total_bytes; },
      [](SymbolChunk& c) { ++c.raw_bytes; },   [](SymbolChunk& c) { ++c.key; },
      [](SymbolChunk& c) { c.key = 0; },
  };
  for (const auto& change : changes) {
    KeepPart(1'000);
    SymbolReceiver receiver(WithParts(), metrics_);
    EXPECT_EQ(receiver.Expect(Id("a"))->part.offset, 1'000u);
    SymbolChunk chunk = ChunkAt(1'000, 500);
    change(chunk);
    EXPECT_EQ(receiver.Take(chunk).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(parts_.Offer(Id("a")).offset, 1'000u) << "the part does not suffer";
  }
  SymbolReceiver without_parts(kLimits, metrics_);
  EXPECT_EQ(without_parts.Expect(Id("a"))->part, SymbolPart());
  EXPECT_EQ(without_parts.Take(ChunkAt(1'000, 500)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReceiverTest, RefusesChunksThatContradictTheFirst) {
  const std::function<void(SymbolChunk&)> changes[] = {
      [](SymbolChunk& c) { c.offset += 500; },       // a hole
      [](SymbolChunk& c) { c.offset -= 500; },       // sent before
      [](SymbolChunk& c) { c.total_bytes -= 100; },  // shrinks
      [](SymbolChunk& c) { c.total_bytes += 100; },
      [](SymbolChunk& c) { c.raw_bytes -= 100; },
      [](SymbolChunk& c) { ++c.key; },
  };
  for (const auto& change : changes) {
    KeepPart(1'000);
    SymbolReceiver receiver(WithParts(), metrics_);
    receiver.Expect(Id("a"));
    ASSERT_TRUE(receiver.Take(ChunkAt(1'000, 1'000)).ok());
    SymbolChunk chunk = ChunkAt(2'000, 1'000);
    change(chunk);
    EXPECT_EQ(receiver.Take(chunk).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(receiver.memory_bytes(), 0u);
    EXPECT_EQ(parts_.Offer(Id("a")).offset, 1'000u) << "what came before it stays, what it sent goes";
  }
}

TEST_F(ReceiverTest, KeepsATableThatIsInterruptedByAnother) {
  SymbolReceiver receiver(WithParts(), metrics_);
  receiver.Expect(Id("a"));
  receiver.Expect(Id("b"));
  ASSERT_TRUE(receiver.Take(ChunkAt(0, 1'000)).ok());
  SymbolChunk other = ChunkAt(0, 500);
  other.id = Id("b");
  ASSERT_TRUE(receiver.Take(other).ok());
  EXPECT_EQ(parts_.Offer(Id("a")).offset, 1'000u);
  receiver.Park();
  EXPECT_EQ(parts_.Offer(Id("b")).offset, 500u);
}

// Honest and hostile nodes upload in any order and are cut off anywhere. A table that comes out whole must be the table
// of its sender. Parts must stay within their limits, and honest nodes must get every table through.
TEST(SymbolResumeProperty, WholeTablesEqualTheirSendersTables) {
  constexpr size_t kPartBytesMax = 300'000;
  std::mt19937_64 random(20'26);
  Metrics metrics;
  SymbolParts parts({.bytes_max = kPartBytesMax, .parts_max = 4}, metrics);
  std::vector<std::pair<ExecutableId, PackedTable>> tables;
  for (uint64_t i = 0; i < 6; ++i) {
    tables.emplace_back(Id("table " + std::to_string(i)), PackedTable::Of(Noise(1 + random() % 200'000, i)));
  }
  size_t honest_whole = 0, spoiled = 0;
  for (int connection = 0; connection < 3'000; ++connection) {
    SymbolReceiver receiver({1'000'000, 1'000'000, &parts}, metrics);
    SymbolSender sender;
    const bool hostile = random() % 3 == 0;
    for (int i = 0; i < 2; ++i) {
      const auto& [id, table] = tables[random() % tables.size()];
      sender.Add(id, table, receiver.Expect(id)->part);
    }
    for (uint64_t left = random() % 10; left > 0; --left) {
      std::optional<SymbolChunk> chunk = sender.Next();
      if (!chunk) break;
      const uint64_t way = hostile ? random() % 4 : 0;
      if (way == 1) chunk->bytes[random() % chunk->bytes.size()] ^= 1;
      if (way == 2) chunk->key ^= random() % 2;
      if (way == 3) chunk->offset = random() % 2 * kSymbolChunkBytes;
      const ExecutableId id = chunk->id;
      auto taken = receiver.Take(*std::move(chunk));
      EXPECT_LE(parts.bytes(), kPartBytesMax);
      if (!taken.ok() && taken.status().code() != absl::StatusCode::kNotFound) {
        EXPECT_TRUE(hostile) << taken.status();
        break;
      }
      if (!taken.ok() || !*taken) continue;
      const absl::StatusOr<std::string>& encoded = (*taken)->encoded;
      if (!encoded.ok()) {
        spoiled += encoded.status().code() == absl::StatusCode::kDataLoss;
        continue;
      }
      const auto it = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == id; });
      EXPECT_EQ(PackedTable::Of(*encoded).key(), it->second.key());
      honest_whole += !hostile;
    }
  }
  EXPECT_GT(honest_whole, 500u);
  EXPECT_GT(spoiled, 10u);
}

}  // namespace
}  // namespace tributary::intake
