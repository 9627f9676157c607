#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/loop_testing.h"
#include "base/metrics.h"
#include "base/tcp.h"
#include "intake/client/delivery.h"
#include "intake/codec/batch_encoder.h"
#include "intake/codec/event_columns.h"
#include "intake/server/acceptor.h"
#include "intake/server/server_options.h"
#include "intake/server/server_session.h"
#include "intake/testing/batch_generator_testing.h"

// For tests: a reducer with one shard, which stores everything in memory. The reducer and the client run on the same
// loop.

namespace tributary::intake {

// A store in memory, which acts as the disk of a reducer: it outlives the TestServer that writes into it.
struct FakeOwner : SessionOwner {
  struct Stored {
    std::vector<Sample> samples;
    std::vector<ProcessEvent> events;
    Accounting accounting;
    int times = 0;
  };

  absl::StatusOr<Known> OnHello(const Hello& hello) override {
    hellos.push_back(hello);
    if (!hello_answer.ok()) return hello_answer;
    Known known{.durable_sequence = durable};
    if (keep_dictionary && dictionary && generation == hello.dictionary_generation) {
      known.dictionary_kept = true;
      known.have = dictionary->counts();
      known.decoder = DecoderOf(generation, *dictionary);
    } else {
      dictionary.reset();
      generation = 0;
    }
    return known;
  }
  absl::Status OnBatch(const SessionInfo&, IncomingBatch batch) override {
    if (on_batch) {
      absl::Status status = on_batch(batch);
      if (!status.ok()) return status;
    }
    if (batch.generation != generation) {
      EXPECT_GT(batch.generation, generation);
      if (batch.derived) {
        EXPECT_EQ(batch.derived->generation, generation);
        dictionary = std::make_shared<Dictionary>(dictionary, batch.derived->eviction);
        ++evictions;
      } else {
        dictionary = std::make_shared<Dictionary>();
      }
      generation = batch.generation;
      ++generations;
    }
    EXPECT_EQ(batch.before, dictionary->counts());
    EXPECT_TRUE(dictionary->Append(batch.definitions));
    if (batch.sequence == 0) return absl::OkStatus();
    EXPECT_EQ(batch.nodes_hash, dictionary->rolling_hash());
    Stored& entry = stored[batch.sequence];
    entry.samples = Resolve(batch.samples);
    entry.events = ResolveIn(*dictionary, batch.events);
    entry.accounting = batch.accounting;
    ++entry.times;
    newest = std::max(newest, batch.sequence);
    return absl::OkStatus();
  }
  void OnSymbolDigest(const SessionInfo&, const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) override {
    digests.emplace_back(id, digest);
  }
  void OnSymbols(const SessionInfo&, const ExecutableId& id, absl::StatusOr<std::string> table) override {
    symbols.emplace_back(id, std::move(table));
  }
  bool OnMetadata(const SessionInfo&, MetadataUpdate update) override {
    metadata.push_back(std::move(update));
    return true;
  }
  void OnClosed(const SessionInfo& session, const absl::Status& why) override {
    closed.push_back(why);
    if (on_closed) on_closed(session);
  }

  // Replaces each node id by a hash of the addresses of its stack, and each thread id by the tid. Tests compare these
  // values, because ids have another meaning in every generation.
  std::vector<Sample> Resolve(std::vector<Sample> samples) const { return ResolveIn(*dictionary, std::move(samples)); }
  static std::vector<Sample> ResolveIn(const Dictionary& in, std::vector<Sample> samples) {
    for (Sample& sample : samples) {
      uint32_t hash = 0;
      for (NodeRef node = sample.node; node.value != 0; node = in.node(node).parent) {
        hash = hash * 31 + static_cast<uint32_t>(in.frame(in.node(node).frame).address);
      }
      sample.node = NodeRef{hash};
      sample.thread = ThreadRef{static_cast<uint32_t>(in.thread(sample.thread).tid.value)};
    }
    return samples;
  }
  // Replaces each string id by a hash of the text.
  static std::vector<ProcessEvent> ResolveIn(const Dictionary& in, std::vector<ProcessEvent> events) {
    for (ProcessEvent& event : events) {
      ForEachString(event, [&in](StringRef& ref) {
        ref = StringRef{static_cast<uint32_t>(std::hash<std::string_view>()(in.string(ref)))};
      });
    }
    return events;
  }
  uint64_t stored_samples() const {
    uint64_t n = 0;
    for (const auto& [sequence, entry] : stored) n += entry.samples.size();
    return n;
  }
  SampleCounts stored_counts() const {
    SampleCounts counts;
    for (const auto& [sequence, entry] : stored) counts += CountRecords(entry);
    return counts;
  }

  uint64_t durable = 0, newest = 0;
  bool keep_dictionary = true;
  absl::Status hello_answer;
  uint32_t generation = 0;
  int generations = 0, evictions = 0;
  std::shared_ptr<Dictionary> dictionary;
  std::map<uint64_t, Stored> stored;
  std::vector<Hello> hellos;
  std::vector<absl::Status> closed;
  std::vector<MetadataUpdate> metadata;
  std::vector<std::pair<ExecutableId, absl::StatusOr<std::string>>> symbols;
  std::vector<std::pair<ExecutableId, absl::StatusOr<SymbolDigest>>> digests;
  std::function<absl::Status(const IncomingBatch&)> on_batch;
  std::function<void(const SessionInfo&)> on_closed;
};

// The acceptor and the sessions of a reducer. To simulate the death of the reducer, destroy this object.
class TestServer {
 public:
  // `owner_of`: returns the owner for the session that sent this Hello.
  TestServer(Loop& loop, ServerOptions options, Metrics& metrics, std::function<SessionOwner&(const Hello&)> owner_of) {
    auto acceptor =
        Acceptor::Listen(loop, options, Clock::Real(), metrics,
                         [this, &loop, options, &metrics, owner_of = std::move(owner_of)](PendingSession pending) {
                           auto stream = pending.stream->Adopt(loop);
                           ASSERT_TRUE(stream.ok()) << stream.status();
                           SessionOwner& owner = owner_of(pending.hello);
                           peer_ids.push_back(pending.peer_id);
                           sessions.push_back(std::make_unique<ServerSession>(
                               loop,
                               ServerSession::Arrival{*std::move(stream), std::move(pending.hello),
                                                      std::move(pending.rest), std::move(pending.peer_id)},
                               options, Clock::Real(), metrics, owner));
                           sessions.back()->Start();
                         });
    EXPECT_TRUE(acceptor.ok()) << acceptor.status();
    if (acceptor.ok()) acceptor_ = *std::move(acceptor);
  }
  uint16_t port() const { return acceptor_->port(); }
  void SetSecurity(std::shared_ptr<Security> security) { acceptor_->SetSecurity(std::move(security)); }
  ServerSession* live() {
    for (auto it = sessions.rbegin(); it != sessions.rend(); ++it) {
      if (!(*it)->closed()) return it->get();
    }
    return nullptr;
  }

  std::vector<std::unique_ptr<ServerSession>> sessions;
  std::vector<std::string> peer_ids;  // of all connections, in their order

 private:
  std::unique_ptr<Acceptor> acceptor_;
};

class IntakeTest : public testing::Test {
 protected:
  void StartServer() {
    server_ = std::make_unique<TestServer>(loop_, server_options_, metrics_,
                                           [this](const Hello&) -> SessionOwner& { return store_; });
    server_options_.port = server_->port();  // so that the next server listens on the same port
  }
  void StartClient() {
    client_options_.session.node_id = "node";
    DeliveryOptions options;
    options.reducers = {{.host = "127.0.0.1", .port = server_options_.port}};
    options.client = client_options_;
    options.memory_bytes_max = memory_bytes_max_;
    options.spool = spool_;
    client_ = std::make_unique<Delivery>(
        loop_, connector_, options, Clock::Real(), metrics_,
        Delivery::Callbacks{.need_symbols = [this](const ExecutableId& id) { asked_.push_back(id); },
                            .need_digest = [this](const ExecutableId& id) { asked_digests_.push_back(id); },
                            .lost =
                                [this](LossReason reason, const SampleCounts& n) {
                                  lost_[reason] += n.total();
                                  lost_events_[reason] += n.events();
                                },
                            .durable = {},
                            .earlier_reported = {}});
    client_->Start();
  }
  // Sends one batch, and adds the samples and events that the reducer must store to sent_ and sent_events_.
  void Send(size_t samples, size_t events = 0) {
    Batch batch = generator_.Next(samples, events);
    std::vector<Sample> expected = FakeOwner::ResolveIn(*batch.dictionary, batch.samples);
    for (Sample& sample : expected) sample.time = RoundToWire(sample.time);
    sent_[batch.sequence] = std::move(expected);
    sent_events_[batch.sequence] = FakeOwner::ResolveIn(*batch.dictionary, batch.events);
    captured_ += samples;
    EXPECT_TRUE(client_->Take(std::move(batch)).ok());
  }
  void AckAll() {
    store_.durable = store_.newest;
    if (ServerSession* session = server_->live()) session->Ack(store_.durable);
  }
  // Runs the loop until `done` returns true. The test fails after 20 s.
  void RunUntil(const std::function<bool()>& done, const char* event) {
    ASSERT_TRUE(RunLoopUntil(loop_, done, 20'000)) << "never: " << event;
  }
  void RunUntilStored(size_t batches) {
    RunUntil([&] { return store_.stored.size() >= batches; }, "batches stored");
  }
  void ExpectStoredIsSent() {
    EXPECT_EQ(store_.stored.size(), sent_.size());
    for (const auto& [sequence, samples] : sent_) EXPECT_EQ(store_.stored[sequence].samples, samples) << sequence;
    for (const auto& [sequence, events] : sent_events_) EXPECT_EQ(store_.stored[sequence].events, events) << sequence;
  }
  uint64_t lost() const {
    uint64_t n = 0;
    for (const auto& [reason, samples] : lost_) n += samples;
    return n;
  }
  // Expects captured = stored + lost, for each sample type, in the accounting of the newest batch.
  void ExpectAccountIsExact() {
    const Accounting& accounting = store_.stored.rbegin()->second.accounting;
    EXPECT_EQ(accounting.captured.total(), captured_);
    EXPECT_EQ(accounting.captured, store_.stored_counts() + accounting.TotalLost()) << "for each type";
    for (const auto& [reason, samples] : lost_) EXPECT_EQ(accounting.LostFor(reason).total(), samples);
  }
  uint64_t Refused(const char* reason) {
    return metrics_.AddCounter("tributary_intake_refusals_total", "", {{"reason", reason}}).value();
  }
  uint64_t Count(const char* name) { return metrics_.AddCounter(name, "").value(); }

  Metrics metrics_;
  Loop loop_;
  FakeOwner store_;
  ServerOptions server_options_{.port = 0, .linger_ms = 50};
  ClientOptions client_options_{.backoff_min_ms = 5, .backoff_max_ms = 50, .seed = 1, .symbol_chunk_period_ms = 1};
  std::unique_ptr<TestServer> server_;
  size_t memory_bytes_max_ = 8u << 20;
  Spool* spool_ = nullptr;
  TcpConnector connector_{loop_};
  std::unique_ptr<Delivery> client_;
  BatchGenerator generator_{1};
  std::map<uint64_t, std::vector<Sample>> sent_;
  std::map<uint64_t, std::vector<ProcessEvent>> sent_events_;
  std::map<LossReason, uint64_t> lost_, lost_events_;
  std::vector<ExecutableId> asked_, asked_digests_;
  uint64_t captured_ = 0;
};

}  // namespace tributary::intake
