#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "intake/wire/frame.h"
#include "reducer/ingest/shard_core.h"

// Tests the core without its threads: the test is the writer, and both ends of the wire.

namespace tributary::ingest {

struct Wire {
  Stream::Callbacks callbacks;
  std::string written;
  bool open = true;
};

class WireStream : public Stream {
 public:
  explicit WireStream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  ~WireStream() override { wire_->open = false; }
  void Start(Callbacks callbacks) override { wire_->callbacks = std::move(callbacks); }
  void PauseReading() override {}
  void ResumeReading() override {}
  void Write(std::string bytes) override { wire_->written += bytes; }
  size_t pending_bytes() const override { return 0; }
  std::string peer() const override { return "test:1"; }

 private:
  std::shared_ptr<Wire> wire_;
};

class TestWriter final : public BatchWriter {
 public:
  bool HasRoom() const override { return room; }
  bool TrySubmit(RowBatch batch) override {
    submitted.push_back(std::move(batch));
    return true;
  }
  bool TryFind(const SessionId& id) override {
    finds.push_back(id);
    return true;
  }
  void Maintain() override {}

  bool room = true;
  std::vector<RowBatch> submitted;
  std::vector<SessionId> finds;
};

class TestDesk final : public SymbolDesk {
 public:
  struct Question {
    uint64_t asker = 0;
    bool sends_digests = false;
    std::vector<ExecutableId> candidates;
    Reply reply;
  };
  bool TryChoose(const SymbolNode& node, std::vector<ExecutableId> candidates, size_t, Reply reply) override {
    questions.push_back({node.connection, node.sends_digests, std::move(candidates), std::move(reply)});
    return true;
  }
  void Take(const SymbolNode& node, const ExecutableId&, absl::StatusOr<std::string>) override {
    taken.push_back(node.connection);
  }
  void TakeDigest(const SymbolNode& node, const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) override {
    EXPECT_TRUE(digest.ok());
    digests.emplace_back(node.node_id, id);
  }
  void Progress(uint64_t asker) override { progress.push_back(asker); }
  void Release(uint64_t asker) override { released.push_back(asker); }
  std::vector<ExecutableId> TakeReleased() override { return std::exchange(to_release, {}); }

  std::vector<Question> questions;
  std::vector<uint64_t> taken, progress, released;
  std::vector<std::pair<std::string, ExecutableId>> digests;
  std::vector<ExecutableId> to_release;
};

class TestMetadata final : public MetadataDesk {
 public:
  bool TryConnect(const MetadataSender& sender) override {
    if (!is_full) lines.push_back("+" + sender.id);
    return !is_full;
  }
  void Disconnect(const MetadataSender& sender) override { lines.push_back("-" + sender.id); }
  bool TryTake(const MetadataSender& sender, MetadataUpdate update) override {
    if (is_full) return false;
    for (const Entity& entity : update.entities) {
      lines.push_back((sender.is_cluster ? "cluster " : "node ") + sender.id + " sends " + entity.id);
    }
    return true;
  }
  bool is_full = false;
  std::vector<std::string> lines;
};

class ShardCoreTest : public testing::Test {
 protected:
  intake::Hello HelloOf(uint8_t session) {
    intake::Hello hello;
    hello.session.session_id.fill(session);
    hello.session.node_id = "node";
    return hello;
  }
  std::shared_ptr<Wire> Connect(const intake::Hello& hello) {
    auto wire = std::make_shared<Wire>();
    core_.Accept({std::make_unique<WireStream>(wire), hello, "", "peer of " + hello.session.node_id});
    return wire;
  }
  void Commit(uint64_t sequence, bool need_dictionary = false) {
    const RowBatch& batch = writer_.submitted.back();
    core_.OnCommitted({Committed(batch, {sequence, need_dictionary})});
  }
  void RunUntil(const std::function<bool()>& done) {
    auto poll = loop_.NewAlarm([&] {
      if (done()) loop_.Stop();
    });
    poll->StartEvery(1);
    loop_.Run();
  }
  // Returns the first frame of this type that the reducer wrote.
  static std::optional<intake::Frame> Find(const Wire& wire, intake::MessageType type) {
    intake::FrameDecoder frames;
    frames.Append(wire.written);
    intake::Frame frame;
    while (*frames.Next(&frame)) {
      if (frame.type == type) return frame;
    }
    return std::nullopt;
  }
  static std::optional<intake::Welcome> WelcomeOn(const Wire& wire) {
    const std::optional<intake::Frame> frame = Find(wire, intake::MessageType::kWelcome);
    if (!frame) return std::nullopt;
    return *intake::DecodeWelcome(frame->payload);
  }
  static bool AsksForDictionary(const Wire& wire) {
    return Find(wire, intake::MessageType::kNeedDictionary).has_value();
  }

  Loop loop_;
  FakeClock clock_;
  Metrics metrics_;
  TestWriter writer_;
  TestDesk symbols_;
  TestMetadata sink_;
  Refusals refusals_{clock_, metrics_};
  ShardCore core_{{loop_, writer_, symbols_, clock_, metrics_},
                  {.server = {.refusals = &refusals_}, .tick_ms = 1, .metadata = &sink_},
                  {}};
};

}  // namespace tributary::ingest
