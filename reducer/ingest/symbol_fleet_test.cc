#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <map>
#include <random>

#include "base/directory_testing.h"
#include "base/loop_testing.h"
#include "intake/client/delivery.h"
#include "intake/recording/recording.h"
#include "intake/recording/replay.h"
#include "intake/testing/relay_testing.h"
#include "reducer/ingest/shard.h"
#include "reducer/sqlite/sqlite_store.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

// A fleet of nodes that run the same executables, and a reducer of two shards, over real sockets. Every table is
// uploaded once, whatever happens to the nodes.

namespace tributary::ingest {
namespace {

constexpr size_t kNodes = 100, kExecutables = 500;
constexpr uint32_t kShards = 2;

ExecutableId IdOf(uint32_t n) {
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                             std::string_view(reinterpret_cast<const char*>(&n), sizeof(n)));
}

// Returns the table as a node makes it: the same on all nodes. Every fifth table takes several chunks.
PackedTable TableOf(uint32_t n) {
  std::mt19937_64 random(n);
  std::vector<std::string> names(n % 5 == 0 ? 6'000 : 50);
  std::vector<SymbolRange> ranges;
  for (std::string& name : names) {
    for (int i = 0; i < 4; ++i) name += std::to_string(random());
    ranges.push_back({0x1000 + 0x40 * ranges.size(), 0x40, name});
  }
  return PackedTable::Of(EncodeSymbolTable(*BuildSymbolTable(IdOf(n), SymbolSource::kSymtab, ranges)));
}

// The table of a hostile node: other names for the same code, and many more of them.
PackedTable HostileTable(const ExecutableId& id) {
  std::vector<SymbolRange> ranges;
  for (uint64_t i = 0; i < 7'000; ++i) ranges.push_back({0x1000 + 0x40 * i, 0x40, "nonsense"});
  return PackedTable::Of(EncodeSymbolTable(*BuildSymbolTable(id, SymbolSource::kDwarf, ranges)));
}

const std::map<ExecutableId, PackedTable>& Tables() {
  static const auto* const tables = [] {
    auto* made = new std::map<ExecutableId, PackedTable>();
    for (uint32_t n = 0; n < kExecutables; ++n) made->emplace(IdOf(n), TableOf(n));
    return made;
  }();
  return *tables;
}

class FleetReducer {
 public:
  explicit FleetReducer(const std::string& directory) {
    store::StoreOptions options;
    options.shards = kShards;
    store_ = store::SqliteStore::Open(directory, options, Clock::Real(), metrics_).value();
    // No time-out helps: a table is asked for again only because its node is gone.
    const SymbolDemand::Options demand{.timeout_ns = 3'600 * kNsPerSecond, .longest_ns = 3'600 * kNsPerSecond};
    symbols_ =
        SymbolStore::Open({.directory = directory + "/symbols", .demand = demand}, Clock::Real(), metrics_).value();
    for (uint32_t number = 0; number < kShards; ++number) {
      Shard::Options shard{.number = number, .tick_ms = 20};
      shard.server.symbol_parts = &parts_;
      shards_.push_back(
          std::make_unique<Shard>(shard, store_->OpenWriter(number).value(), *symbols_, Clock::Real(), metrics_));
    }
    acceptor_ = intake::Acceptor::Listen(shards_[0]->loop(), {.port = 0}, Clock::Real(), metrics_,
                                         [this](intake::PendingSession session) {
                                           const uint32_t shard =
                                               store::ShardOf(session.hello.session.node_id, kShards);
                                           if (own_credentials_) session.peer_id = session.hello.session.node_id;
                                           shards_[shard]->Accept(std::move(session));
                                         })
                    .value();
    port_ = acceptor_->port();
    for (const auto& shard : shards_) shard->Start();
  }
  ~FleetReducer() {
    std::promise<void> closed;
    shards_[0]->loop().Post([&] {
      acceptor_.reset();
      closed.set_value();
    });
    closed.get_future().wait();
    for (const auto& shard : shards_) shard->Stop();
  }

  // By default, each node counts as a peer of its own, as if it had a credential of its own. From now on, only the
  // addresses of nodes count.
  void RequireNoCredentials() { own_credentials_ = false; }
  uint16_t port() const { return port_; }
  SymbolStore& symbols() { return *symbols_; }
  intake::SymbolParts& parts() { return parts_; }
  uint64_t Count(const char* name, Metrics::Labels labels = {}) {
    return metrics_.AddCounter(name, "", labels).value();
  }
  uint64_t Event(const char* event) { return Count("tributary_intake_symbol_uploads_total", {{"event", event}}); }
  uint64_t Refused() { return Count("tributary_intake_refusals_total", {{"reason", "bad_message"}}); }
  uint64_t Stored(const char* result) { return Count("tributary_symbolizer_uploads_total", {{"result", result}}); }

 private:
  Metrics metrics_;
  intake::SymbolParts parts_{{}, metrics_};
  std::atomic<bool> own_credentials_ = true;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<SymbolStore> symbols_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<intake::Acceptor> acceptor_;
  uint16_t port_ = 0;
};

// The real client half. It has all the executables and answers at once.
class FleetNode {
 public:
  // `digests`: the node answers requests for digests. `hostile`: it has tables with other names.
  FleetNode(Loop& loop, uint16_t port, uint32_t number, int64_t chunk_period_ms, bool digests, bool hostile)
      : connector_(loop) {
    intake::DeliveryOptions delivery;
    delivery.reducers = {{.host = "127.0.0.1", .port = port}};
    intake::ClientOptions& options = delivery.client;
    for (size_t i = 0; i < sizeof(number); ++i) options.session.session_id[i] = static_cast<uint8_t>(number >> 8 * i);
    options.session.node_id = "node-" + std::to_string(number);
    options.session.boot_id = "0b00";
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 20;
    options.symbol_chunk_period_ms = chunk_period_ms;
    client_ = std::make_unique<intake::Delivery>(
        loop, connector_, delivery, Clock::Real(), metrics_,
        intake::Delivery::Callbacks{
            .need_symbols =
                [this, hostile](const ExecutableId& id) {
                  client_->SendSymbols(id, hostile ? HostileTable(id) : Tables().at(id));
                },
            .need_digest = !digests
                               ? std::function<void(const ExecutableId&)>()
                               : [this](const ExecutableId& id) { client_->SendDigest(id, Tables().at(id).digest()); },
            .lost = {},
            .durable = {},
            .earlier_reported = {}});
    client_->Start();
    Batch batch;
    batch.sequence = 1;
    batch.clock = Clock::Real().Pair();
    auto dictionary = std::make_shared<Dictionary>();
    for (const auto& [id, table] : Tables()) dictionary->InternExecutable(id, "/bin/" + id.ToString());
    batch.dictionary = dictionary;
    EXPECT_TRUE(client_->Take(std::move(batch)).ok());
  }
  intake::Delivery& client() { return *client_; }

 private:
  Metrics metrics_;
  TcpConnector connector_;
  std::unique_ptr<intake::Delivery> client_;
};

class SymbolFleetTest : public testing::Test {
 protected:
  void StartNodes(int64_t chunk_period_ms) {
    for (uint32_t n = 0; n < kNodes; ++n) StartNode(chunk_period_ms);
  }
  void StartNode(int64_t chunk_period_ms, bool digests = false, bool hostile = false) {
    nodes_.push_back(std::make_unique<FleetNode>(loop_, relay_.port(), started_++, chunk_period_ms, digests, hostile));
  }
  uint64_t Digests(const char* result) {
    return reducer_.Count("tributary_symbolizer_digests_total", {{"result", result}});
  }
  size_t CountOf(SymbolOrigin origin) {
    size_t count = 0;
    const auto rows = reducer_.symbols().List();
    if (!rows.ok()) return 0;
    for (const SymbolFiles::Row& row : *rows) count += row.origin() == origin ? 1 : 0;
    return count;
  }
  // Runs until `done` returns true. Checks `done` every few milliseconds, and fails after two minutes.
  void RunUntil(const std::function<bool()>& done, const char* condition) {
    ASSERT_TRUE(RunLoopUntil(loop_, done, 120'000, 5)) << "never: " << condition;
  }
  bool AllHere() { return reducer_.Stored("stored") >= kExecutables; }
  // Waits for two rounds, in which any node might still be asked for a table.
  void Settle() {
    int rounds = 40;
    RunUntil([&] { return --rounds == 0; }, "time passes");
  }
  void ExpectEachOnce() {
    EXPECT_EQ(reducer_.Stored("stored"), kExecutables);
    EXPECT_EQ(reducer_.Stored("kept_better"), 0u) << "uploaded twice";
    EXPECT_EQ(reducer_.Event("begun"), kExecutables);
    EXPECT_EQ(reducer_.Event("whole"), kExecutables);
    EXPECT_EQ(reducer_.Event("spoiled") + reducer_.Event("lost"), 0u);
    uint64_t bytes = 0;
    for (const auto& [id, table] : Tables()) bytes += table.stored_bytes();
    EXPECT_EQ(reducer_.Count("tributary_intake_symbol_bytes_total"), bytes);
    for (uint32_t n = 0; n < kExecutables; ++n) {
      const std::shared_ptr<const SymbolTable> table = reducer_.symbols().Get(IdOf(n));
      ASSERT_NE(table, nullptr) << n;
      EXPECT_TRUE(PackedTable::Of(EncodeSymbolTable(*table)).key() == Tables().at(IdOf(n)).key()) << n;
    }
  }

  TestDirectory directory_;
  FleetReducer reducer_{directory_.path()};
  Loop loop_;
  intake::TestRelay relay_{loop_, reducer_.port()};
  uint32_t started_ = 0;
  std::vector<std::unique_ptr<FleetNode>> nodes_;
};

TEST_F(SymbolFleetTest, AHundredNodesUploadEachTableOnce) {
  StartNodes(/*chunk_period_ms=*/1);
  RunUntil([this] { return AllHere(); }, "all tables are here");
  Settle();
  ExpectEachOnce();
  // The counts on the wire.
  uint64_t begun = 0, ended = 0;
  for (const auto& [id, carried] : relay_.carried()) {
    begun += carried.begun;
    ended += carried.ended;
    EXPECT_EQ(carried.bytes, Tables().at(id).stored_bytes());
  }
  EXPECT_EQ(begun, kExecutables);
  EXPECT_EQ(ended, kExecutables);
  EXPECT_EQ(reducer_.Count("tributary_symbolizer_requests_total"), kExecutables);
}

// Nodes that connect later have the same executables, and are asked only for digests.
TEST_F(SymbolFleetTest, ASecondNodeConfirmsTheTablesOfTheFirst) {
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  RunUntil([this] { return AllHere(); }, "all tables are here");
  EXPECT_EQ(CountOf(SymbolOrigin::kNode), kExecutables);
  StartNode(/*chunk_period_ms=*/1);  // of an earlier release, so it is not asked
  Settle();
  EXPECT_EQ(Digests("asked"), 0u);
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  RunUntil([this] { return CountOf(SymbolOrigin::kNodes) == kExecutables; }, "all tables are confirmed");
  EXPECT_EQ(Digests("agreed"), kExecutables);
  EXPECT_EQ(Digests("asked"), kExecutables);
  EXPECT_EQ(reducer_.Refused(), 0u);
  ExpectEachOnce();
}

// One machine may invent any number of node ids, as long as no credentials are required.
TEST_F(SymbolFleetTest, TwoIdsFromOneAddressDoNotConfirmATable) {
  reducer_.RequireNoCredentials();
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  RunUntil([this] { return AllHere(); }, "all tables are here");
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  Settle();
  EXPECT_EQ(CountOf(SymbolOrigin::kNodes), 0u);
  EXPECT_EQ(Digests("asked"), 0u);
}

// The first node is hostile. Two others outvote it, and one of them sends its tables.
TEST_F(SymbolFleetTest, AHostileFirstNodeDoesNotDecideNames) {
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true, /*hostile=*/true);
  RunUntil([this] { return AllHere(); }, "all tables are here");
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  RunUntil([this] { return Digests("no_verdict") == kExecutables; }, "the second node disagrees");
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  RunUntil([this] { return Digests("no_verdict") == 2 * kExecutables; }, "two nodes agree on other tables");
  nodes_.pop_back();  // it connects again, and need not wait for its next round
  --started_;
  StartNode(/*chunk_period_ms=*/1, /*digests=*/true);
  RunUntil([this] { return CountOf(SymbolOrigin::kNodes) == kExecutables; }, "all tables are replaced");
  EXPECT_EQ(reducer_.Stored("stored"), 2 * kExecutables);
  for (uint32_t n = 0; n < kExecutables; n += 50) {
    EXPECT_NE(reducer_.symbols().Get(IdOf(n))->Find(0x1000)->name, "nonsense") << n;
  }
}

class NoSink : public BatchSink {
 public:
  absl::Status Take(Batch) override { return absl::OkStatus(); }
};

// One recorded node is sent again as a hundred nodes. A process that dies in the middle sends half of them.
TEST_F(SymbolFleetTest, AHundredReplayedNodesUploadEachTableOnce) {
  const std::string path = directory_.path() + "/recording";
  Metrics metrics;
  NoSink none;
  auto dictionary = std::make_shared<Dictionary>();
  for (const auto& [id, table] : Tables()) dictionary->InternExecutable(id, "/bin/" + id.ToString());
  {
    SessionInfo session;
    session.node_id = session.host_name = "recorded";
    auto sink = intake::RecordingSink::Open({.path = path}, session, none, Clock::Real(), metrics);
    ASSERT_TRUE(sink.ok()) << sink.status();
    Batch batch{.dictionary = dictionary};
    for (batch.sequence = 1; batch.sequence <= 2; ++batch.sequence) {
      batch.clock = Clock::Real().Pair();
      batch.clock.monotonic.value += static_cast<int64_t>(batch.sequence) * kNsPerSecond;
      batch.clock.unix.value += static_cast<int64_t>(batch.sequence) * kNsPerSecond;
      ASSERT_TRUE((*sink)->Take(batch).ok());
    }
  }
  TcpConnector connector(loop_);
  std::vector<std::unique_ptr<intake::Replay>> replays;
  for (uint64_t seed : {1, 2}) {
    auto script = intake::ReplayScript::Load(path);
    ASSERT_TRUE(script.ok()) << script.status();
    intake::ReplayOptions options{.port = reducer_.port(), .nodes = kNodes / 2, .repeat = 0, .seed = seed};
    options.symbols = [](const ExecutableId& id) { return Tables().at(id); };
    options.symbol_chunk_period_ms = 20;
    replays.push_back(std::make_unique<intake::Replay>(loop_, connector, Clock::Real(), *std::move(script), options,
                                                       [](const absl::Status& why) { ADD_FAILURE() << why; }));
    replays.back()->Start();
  }
  RunUntil([&] { return reducer_.Event("whole") >= kExecutables / 4; }, "some tables are here");
  replays.pop_back();
  RunUntil([this] { return AllHere(); }, "all tables are here");
  Settle();
  ExpectEachOnce();
}

// Connections are cut between frames and in the middle of frames. Every byte is still taken only once.
TEST_F(SymbolFleetTest, CutOffNodesUploadNothingTwice) {
  std::mt19937_64 random(1);
  relay_.cut_in = [&](const intake::SymbolChunk&) { return random() % 8 == 0; };
  StartNodes(/*chunk_period_ms=*/2);
  RunUntil(
      [&] {
        if (random() % 2 == 0) relay_.Cut(random() % kNodes);
        return AllHere();
      },
      "all tables are here");
  relay_.cut_in = nullptr;
  Settle();
  ExpectEachOnce();
  EXPECT_GT(relay_.cuts(), 50u);
  EXPECT_GT(reducer_.Event("resumed"), 10u);
}

// Nodes die for good. Other nodes finish the tables that the dead nodes began, without waiting for a time-out.
TEST_F(SymbolFleetTest, OtherNodesFinishUploadsOfDeadNodes) {
  std::mt19937_64 random(2);
  StartNodes(/*chunk_period_ms=*/20);
  RunUntil(
      [&] {
        if (nodes_.size() > kNodes / 2 && reducer_.Event("begun") > 0) {
          nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(random() % nodes_.size()));
        }
        return AllHere();
      },
      "all tables are here");
  Settle();
  ExpectEachOnce();
  EXPECT_EQ(nodes_.size(), kNodes / 2);
  EXPECT_GT(reducer_.Event("resumed"), 0u);
}

// An unknown sender left parts with false contents. A node that continues such a part is not at fault, and each such
// table is asked for once more.
TEST_F(SymbolFleetTest, DiscardsSpoiledPartsAndUploadsTheirTablesWhole) {
  constexpr uint32_t kSpoiled = 10;
  for (uint32_t n = 0; n < kSpoiled; ++n) {
    const PackedTable& table = Tables().at(IdOf(n));
    reducer_.parts().Keep(IdOf(n), {table.stored_bytes(), table.raw_bytes(), table.key(), std::string(100, 'x')});
  }
  StartNodes(/*chunk_period_ms=*/1);
  RunUntil([this] { return AllHere(); }, "all tables are here");
  Settle();
  EXPECT_EQ(reducer_.Event("spoiled"), kSpoiled);
  EXPECT_EQ(reducer_.Event("resumed"), kSpoiled);
  EXPECT_EQ(reducer_.Event("begun"), kExecutables);
  EXPECT_EQ(reducer_.Event("whole"), kExecutables);
  EXPECT_EQ(reducer_.Stored("stored"), kExecutables);
  EXPECT_EQ(reducer_.Refused(), 0u);
}

}  // namespace
}  // namespace tributary::ingest
