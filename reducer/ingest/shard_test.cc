#include "reducer/ingest/shard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <list>
#include <random>

#include "base/loop_testing.h"
#include "base/tcp.h"
#include "intake/client/delivery.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary::ingest {
namespace {

constexpr store::TimeRange kAlways{UnixNs{0}, UnixNs{std::numeric_limits<int64_t>::max()}};

// A writer with a disk that is full while the test says so.
class FullDisk : public store::ShardWriter {
 public:
  FullDisk(std::unique_ptr<store::ShardWriter> real, const std::atomic<bool>& full)
      : real_(std::move(real)), full_(full) {}
  absl::StatusOr<std::vector<Outcome>> Commit(std::span<const RowBatch> group) override {
    if (full_) return absl::ResourceExhaustedError("disk is full");
    return real_->Commit(group);
  }
  absl::StatusOr<SessionState> FindSession(std::span<const uint8_t> id) override { return real_->FindSession(id); }
  absl::Status Maintain(UnixNs now) override { return real_->Maintain(now); }

 private:
  std::unique_ptr<store::ShardWriter> real_;
  const std::atomic<bool>& full_;
};

struct ReducerSetup {
  uint16_t port = 0;
  size_t sessions_max = 100;  // limit of dictionaries in the store's memory
  size_t queue_batches_max = 1024;
};

// Store, symbol store, one shard and an acceptor in front of it. A test may take it down and build it again on the same
// files.
class Reducer {
 public:
  explicit Reducer(const std::string& directory, ReducerSetup setup = {}) {
    store::StoreOptions options;
    options.sessions_max = setup.sessions_max;
    store_ = store::SqliteStore::Open(directory, options, Clock::Real(), metrics_).value();
    symbols_ = SymbolStore::Open({.directory = directory + "/symbols"}, Clock::Real(), metrics_).value();
    Shard::Options shard{.writer = {.queue_batches_max = setup.queue_batches_max, .retry_min_ms = 1, .retry_max_ms = 5},
                         .tick_ms = 20};
    shard_ = std::make_unique<Shard>(shard, std::make_unique<FullDisk>(store_->OpenWriter(0).value(), disk_full),
                                     *symbols_, Clock::Real(), metrics_);
    intake::ServerOptions server;
    server.port = setup.port;
    acceptor_ = intake::Acceptor::Listen(shard_->loop(), server, Clock::Real(), metrics_,
                                         [this](intake::PendingSession session) { shard_->Accept(std::move(session)); })
                    .value();
    port_ = acceptor_->port();
    shard_->Start();
  }
  ~Reducer() {
    std::promise<void> closed;
    shard_->loop().Post([&] {
      acceptor_.reset();
      closed.set_value();
    });
    closed.get_future().wait();
    shard_->Stop();
  }

  uint16_t port() const { return port_; }
  store::SqliteStore& store() { return *store_; }
  SymbolStore& symbols() { return *symbols_; }
  Shard& shard() { return *shard_; }
  std::string metrics() const { return metrics_.PrometheusText(); }
  uint64_t metric(const std::string& name) const {
    const std::string text = metrics(), line = "\n" + name + " ";
    const size_t at = text.find(line);
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + line.size()));
  }

  std::atomic<bool> disk_full{false};

 private:
  Metrics metrics_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<SymbolStore> symbols_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<intake::Acceptor> acceptor_;
  uint16_t port_ = 0;
};

// The test's thread: its loop, and a way to wait until a condition becomes true.
class TestLoop {
 public:
  Loop& loop() { return loop_; }
  bool RunUntil(const std::function<bool()>& condition, uint64_t timeout_ms = 20'000) {
    return RunLoopUntil(loop_, condition, timeout_ms, 2);
  }

 private:
  Loop loop_;
};

// A wire that the test can cut.
class Relay {
 public:
  Relay(Loop& loop, uint16_t to) : loop_(loop), to_(to) {
    listener_ = TcpListener::Listen(loop, "127.0.0.1", 0, [this](std::unique_ptr<TcpStream> stream) {
                  Accept(std::move(stream));
                }).value();
  }
  uint16_t port() const { return listener_->port(); }
  void Cut() { pairs_.clear(); }

 private:
  struct Pair {
    std::unique_ptr<TcpStream> near, far;
  };
  void Accept(std::unique_ptr<TcpStream> near) {
    Pair& pair = pairs_.emplace_back();
    pair.near = std::move(near);
    pair.far = TcpStream::Connect(loop_, "127.0.0.1", to_, [&pair](const absl::Status& status) {
      if (!status.ok()) return;
      pair.far->Start({.on_data = [&pair](std::string_view bytes) { pair.near->Write(std::string(bytes)); },
                       .on_close = [&pair](const absl::Status&) { pair.near.reset(); },
                       .on_drained = {}});
      pair.near->Start({.on_data = [&pair](std::string_view bytes) { pair.far->Write(std::string(bytes)); },
                        .on_close = [&pair](const absl::Status&) { pair.far.reset(); },
                        .on_drained = {}});
    });
  }

  Loop& loop_;
  uint16_t to_;
  std::list<Pair> pairs_;
  std::unique_ptr<TcpListener> listener_;
};

// A collector with the real client half, on the test's thread.
class Node {
 public:
  Node(Loop& loop, uint16_t port, const std::string& node_id, uint8_t session)
      : connector_(loop), dictionary_(std::make_shared<Dictionary>()) {
    intake::DeliveryOptions delivery;
    delivery.reducers = {{.host = "127.0.0.1", .port = port}};
    intake::ClientOptions& options = delivery.client;
    options.session.session_id.fill(session);
    options.session.node_id = node_id;
    options.session.host_name = node_id;
    options.session.boot_id = "0b00";
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 20;
    options.symbol_chunk_period_ms = 1;
    client_ = std::make_unique<intake::Delivery>(
        loop, connector_, delivery, Clock::Real(), metrics_,
        intake::Delivery::Callbacks{.need_symbols = [this](const ExecutableId& id) { needed_.push_back(id); },
                                    .lost = {},
                                    .durable = {},
                                    .earlier_reported = {}});
    client_->Start();
  }

  void SendBatch(int samples) {
    Batch batch;
    batch.sequence = ++sequence_;
    batch.clock = Clock::Real().Pair();
    Process process;
    process.key = {Pid{10}, 1, 0};
    process.comm = dictionary_->InternString("spin");
    ThreadRef thread = dictionary_->InternThread({dictionary_->InternProcess(process), Tid{10}, StringRef{}});
    ExecutableRef executable = dictionary_->InternExecutable(Id(), "/bin/spin");
    for (int i = 0; i < samples; ++i) {
      Sample sample;
      sample.time = batch.clock.monotonic;
      sample.thread = thread;
      sample.value = 1000;
      sample.ending = Ending::kComplete;
      FrameRef root = dictionary_->InternFrame({FrameKind::kNative, true, executable, 0x1000});
      FrameRef leaf = dictionary_->InternFrame({FrameKind::kNative, false, executable, LeafAddress(random_() % 500)});
      sample.node = dictionary_->InternNode({dictionary_->InternNode({NodeRef{}, root}), leaf});
      batch.samples.push_back(sample);
      accounting_.captured += 1;
    }
    batch.accounting = accounting_;
    batch.dictionary = dictionary_;
    ASSERT_TRUE(client_->Take(std::move(batch)).ok());
  }
  void NewDictionary() { dictionary_ = std::make_shared<Dictionary>(); }

  bool acked() const { return client_->waiting_samples() == 0; }

  static ExecutableId Id() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "spin-build-id"); }
  intake::Delivery& client() { return *client_; }
  const std::vector<ExecutableId>& needed() const { return needed_; }
  uint64_t captured() const { return accounting_.captured.total(); }

 private:
  // Returns addresses that do not compress, so that definitions take space.
  static uint64_t LeafAddress(uint64_t n) { return 0x2000 + (n * 0x9e3779b97f4a7c15 >> 8); }

  Metrics metrics_;
  TcpConnector connector_;
  std::shared_ptr<Dictionary> dictionary_;
  std::unique_ptr<intake::Delivery> client_;
  std::vector<ExecutableId> needed_;
  Accounting accounting_;
  uint64_t sequence_ = 0;
  std::mt19937_64 random_{1};
};

void ExpectLaw(store::Store& store, uint64_t captured) {
  auto reader = store.OpenReader(0).value();
  const store::Totals totals = TotalsOf(*reader);
  EXPECT_EQ(totals.captured, captured);
  EXPECT_EQ(totals.stored, captured);
  EXPECT_EQ(totals.lost, 0u);
  uint64_t samples = 0;
  ASSERT_TRUE(reader
                  ->ScanSamples(kAlways,
                                [&](const store::SampleColumns& columns) {
                                  samples += columns.times.size();
                                  return absl::OkStatus();
                                })
                  .ok());
  EXPECT_EQ(samples, captured);
}

TEST(Shard, StoresABatchBeforeItAcknowledgesIt) {
  TestDirectory directory;
  Reducer reducer(directory.path());
  TestLoop test;
  Node node(test.loop(), reducer.port(), "node-a", 1);
  for (int i = 0; i < 10; ++i) node.SendBatch(100);
  ASSERT_TRUE(test.RunUntil([&] { return node.acked(); }));
  ExpectLaw(reducer.store(), 1000);
  EXPECT_TRUE(reducer.shard().IsConnected("node-a"));
  EXPECT_FALSE(reducer.shard().IsConnected("node-b"));
  auto nodes = reducer.store().OpenReader(0).value()->Nodes().value();
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_GT(nodes[0].wire_bytes, 1000u);
  EXPECT_LE(nodes[0].wire_bytes, node.client().bytes_sent());
}

// The reducer stops and comes back on the same files and port, while the node continues. Every sample is stored once.
TEST(Shard, LosesNothingOverRestarts) {
  TestDirectory directory;
  auto reducer = std::make_unique<Reducer>(directory.path());
  const uint16_t port = reducer->port();
  TestLoop test;
  Node node(test.loop(), port, "node-a", 1);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) node.SendBatch(50);
    ASSERT_TRUE(test.RunUntil([&] { return node.client().connected(); }));
    reducer.reset();
    node.SendBatch(20);
    if (round == 1) node.NewDictionary();
    node.SendBatch(20);
    reducer = std::make_unique<Reducer>(directory.path(), ReducerSetup{.port = port});
  }
  ASSERT_TRUE(test.RunUntil([&] { return node.acked(); }));
  ExpectLaw(reducer->store(), node.captured());
  EXPECT_EQ(node.captured(), 3u * 290u);
}

TEST(Shard, ADictionarySurvivesAReconnect) {
  TestDirectory directory;
  Reducer reducer(directory.path());
  TestLoop test;
  Relay relay(test.loop(), reducer.port());
  Node node(test.loop(), relay.port(), "node-a", 1);
  node.SendBatch(10'000);  // all 500 stacks
  ASSERT_TRUE(test.RunUntil([&] { return node.acked(); }));
  const uint64_t before = node.client().bytes_sent();
  relay.Cut();
  node.SendBatch(10);
  ASSERT_TRUE(test.RunUntil([&] { return node.acked(); }));
  EXPECT_LT(node.client().bytes_sent() - before, 2'000u) << "500 addresses of 7 bytes were not sent again";
  ExpectLaw(reducer.store(), node.captured());
}

// Cut wires, dictionaries that do not fit in the store's memory, new generations: a batch that comes twice is stored
// once, and no batch is skipped.
TEST(Shard, LosesNothingWhenEverythingIsSentAgain) {
  TestDirectory directory;
  Reducer reducer(directory.path(), {.sessions_max = 1, .queue_batches_max = 2});
  TestLoop test;
  Relay relay(test.loop(), reducer.port());
  std::vector<std::unique_ptr<Node>> nodes;
  for (uint8_t i = 1; i <= 3; ++i) {
    nodes.push_back(std::make_unique<Node>(test.loop(), relay.port(), "node-" + std::to_string(i), i));
  }
  std::mt19937_64 random(5);
  for (int step = 0; step < 150; ++step) {
    Node& node = *nodes[random() % nodes.size()];
    node.SendBatch(static_cast<int>(random() % 40));
    if (random() % 20 == 0) node.NewDictionary();
    if (random() % 15 == 0) relay.Cut();
    int turns = static_cast<int>(random() % 3);
    test.RunUntil([&] { return turns-- <= 0; });
  }
  uint64_t captured = 0;
  for (const auto& node : nodes) {
    ASSERT_TRUE(test.RunUntil([&] { return node->acked(); }));
    captured += node->captured();
  }
  ExpectLaw(reducer.store(), captured);
}

// Nothing is committed for a while: one node sends all it can, and ten other nodes send a batch now and then. The
// batches of the other nodes fit into the queue.
TEST(Shard, AFloodingNodeFillsOnlyItsShare) {
  TestDirectory directory;
  Reducer reducer(directory.path(), {.queue_batches_max = 64});
  TestLoop test;
  std::vector<std::unique_ptr<Node>> nodes;
  for (uint8_t i = 0; i <= 10; ++i) {
    nodes.push_back(std::make_unique<Node>(test.loop(), reducer.port(), "node-" + std::to_string(i), 1 + i));
    nodes.back()->SendBatch(1);
  }
  for (const auto& node : nodes) ASSERT_TRUE(test.RunUntil([&] { return node->acked(); }));
  reducer.disk_full = true;
  Node& flood = *nodes.front();
  for (int i = 0; i < 200; ++i) flood.SendBatch(20);
  ASSERT_TRUE(test.RunUntil([&] { return reducer.metric("tributary_reducer_over_share_total") > 0; }));
  EXPECT_LE(reducer.metric("tributary_reducer_queue_batches"), 16u) << "a quarter of 64";
  for (uint64_t round = 1; round <= 2; ++round) {
    for (size_t i = 1; i < nodes.size(); ++i) nodes[i]->SendBatch(5);
    const uint64_t of_others = 10 * round;
    ASSERT_TRUE(test.RunUntil([&] { return reducer.metric("tributary_reducer_queue_batches") >= of_others + 1; }));
  }
  ASSERT_TRUE(test.RunUntil([&] { return reducer.metric("tributary_intake_batches_total") >= 11 + 20 + 16; }));
  EXPECT_EQ(reducer.metric("tributary_reducer_held_back_total"), 0u) << "no other node was stopped";
  reducer.disk_full = false;
  uint64_t captured = 0;
  for (const auto& node : nodes) {
    ASSERT_TRUE(test.RunUntil([&] { return node->acked(); }));
    captured += node->captured();
  }
  ExpectLaw(reducer.store(), captured);
}

TEST(Shard, AFullDiskHoldsCollectorsBackAndLosesNothing) {
  TestDirectory directory;
  Reducer reducer(directory.path(), {.queue_batches_max = 3});
  TestLoop test;
  Node node(test.loop(), reducer.port(), "node-a", 1);
  node.SendBatch(10);
  ASSERT_TRUE(test.RunUntil([&] { return node.acked(); }));
  reducer.disk_full = true;
  for (int i = 0; i < 30; ++i) node.SendBatch(50);
  auto held_back = [&] { return reducer.metrics().find("tributary_reducer_over_share_total 0") == std::string::npos; };
  ASSERT_TRUE(test.RunUntil(held_back));
  EXPECT_EQ(node.client().waiting_samples(), 1500u);
  reducer.disk_full = false;
  ASSERT_TRUE(test.RunUntil([&] { return node.acked(); }));
  ExpectLaw(reducer.store(), 1510);
}

TEST(Shard, SymbolsAreAskedForOnceAndStored) {
  TestDirectory directory;
  Reducer reducer(directory.path());
  TestLoop test;
  Node first(test.loop(), reducer.port(), "node-a", 1), second(test.loop(), reducer.port(), "node-b", 2);
  first.SendBatch(10);
  ASSERT_TRUE(test.RunUntil([&] { return !first.needed().empty(); }));
  EXPECT_EQ(first.needed(), std::vector<ExecutableId>{Node::Id()});
  second.SendBatch(10);
  ASSERT_TRUE(test.RunUntil([&] { return second.acked(); }));
  auto table = BuildSymbolTable(Node::Id(), SymbolSource::kSymtab, {{0x1000, 0x100, "main"}, {0x2000, 0x800, "spin"}});
  first.client().SendSymbols(Node::Id(), PackedTable::Of(EncodeSymbolTable(*table)));
  ASSERT_TRUE(test.RunUntil([&] { return reducer.symbols().Get(Node::Id()) != nullptr; }));
  EXPECT_EQ(reducer.symbols().Get(Node::Id())->Find(0x2010)->name, "spin");
  EXPECT_TRUE(second.needed().empty());
}

TEST(Shard, ANewConnectionOfASessionReplacesTheOld) {
  TestDirectory directory;
  Reducer reducer(directory.path());
  TestLoop test;
  Node old(test.loop(), reducer.port(), "node-a", 1);
  old.SendBatch(10);
  ASSERT_TRUE(test.RunUntil([&] { return old.acked(); }));
  auto replacement = std::make_unique<Node>(test.loop(), reducer.port(), "node-a", 1);
  ASSERT_TRUE(test.RunUntil([&] { return replacement->client().connected() && !old.client().connected(); }));
  // The old node connects again and then replaces the new one, so a session may just be ending.
  EXPECT_TRUE(test.RunUntil([&] { return reducer.shard().IsConnected("node-a"); }));
}

}  // namespace
}  // namespace tributary::ingest
