#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>

#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "intake/codec/event_columns.h"
#include "intake/testing/batch_generator_testing.h"
#include "profile/eviction.h"

// Tests both ends of a session with a dictionary so small that it is evicted from all the time, over a connection that
// breaks. Each batch that arrives must have the content that was sent.

namespace tributary::intake {
namespace {

constexpr DictionaryLimits kSmall{
    .nodes_max = 60, .frames_max = 50, .strings_max = 40, .processes_max = 12, .threads_max = 24};

std::string Describe(const Dictionary& d, const Sample& sample) {
  const Thread& thread = d.thread(sample.thread);
  const Process& process = d.process(thread.process);
  std::string out = std::to_string(RoundToWire(sample.time).value) + " " + std::to_string(sample.cpu) + " " +
                    std::to_string(sample.value) + " " + std::to_string(thread.tid.value) +
                    std::string(d.string(thread.name)) + "/" + std::to_string(process.key.pid.value) +
                    std::string(d.string(process.comm)) + std::string(d.string(process.container_id)) +
                    std::string(d.string(sample.attributes));
  for (NodeRef node = sample.node; node.value != 0; node = d.node(node).parent) {
    const tributary::Frame& frame = d.frame(d.node(node).frame);
    out += ";" + std::to_string(frame.address) + std::string(d.executable(frame.executable).id.view()) +
           std::string(d.string(d.executable(frame.executable).path)) + std::string(d.string(frame.name)) +
           std::to_string(frame.position) + "k" + std::to_string(static_cast<int>(frame.kind));
  }
  return out;
}

std::string Describe(const Dictionary& d, const ProcessEvent& event) {
  std::string out = std::to_string(RoundToWire(event.time).value) + " " + std::to_string(event.pid.value);
  ForEachString(event, [&](StringRef ref) { out += " " + std::string(d.string(ref)); });
  return out;
}

// Returns a dictionary with the first definitions of each table.
std::shared_ptr<Dictionary> Prefix(const Dictionary& d, const DictionaryCounts& counts) {
  auto out = std::make_shared<Dictionary>();
  Definitions first = d.DefinedSince({});
  ForEachTable([](auto& table, uint32_t count) { table.resize(count - 1); }, first, counts);
  EXPECT_TRUE(out->Append(first));
  return out;
}

class Ends {
 public:
  explicit Ends(uint64_t seed) : random_(seed), growing_(std::make_shared<Dictionary>(kSmall)) {}

  void MakeBatch() {
    if (growing_->node_count() + 12 > kSmall.nodes_max || growing_->frame_count() + 12 > kSmall.frames_max ||
        growing_->thread_count() + 4 > kSmall.threads_max || growing_->process_count() + 4 > kSmall.processes_max ||
        growing_->string_count() + 20 > kSmall.strings_max) {
      growing_ = Below(10) == 0 ? std::make_shared<Dictionary>(kSmall) : EvictOldest(growing_);
      ++evictions;
      const bool full = growing_->node_count() + 12 > kSmall.nodes_max ||
                        growing_->string_count() + 20 > kSmall.strings_max ||
                        growing_->process_count() + 4 > kSmall.processes_max;
      if (full) growing_ = std::make_shared<Dictionary>(kSmall);
    }
    Batch batch{.sequence = ++made_, .clock = {MonotonicNs{now_}, UnixNs{now_}}, .dictionary = growing_};
    growing_->SetNow(static_cast<uint32_t>(made_));
    for (uint64_t n = Below(4); n > 0; --n) batch.samples.push_back(MakeSample());
    for (uint64_t n = Below(3); n > 0; --n) batch.events.push_back(MakeEvent());
    held_back_.push_back(std::move(batch));
  }

  // Sends the batches that were not sent yet; the connection may break in between.
  void Send() {
    for (; next_ < held_back_.size(); ++next_) {
      const Batch& batch = held_back_[next_];
      if (!encoder_ || encoder_dictionary_ != batch.dictionary) {
        const bool continues = encoder_ && encoder_->CanContinue(*batch.dictionary);
        continued += continues ? 1 : 0;
        encoder_ = BatchEncoder::Following(++generation_, encoder_ ? &*encoder_ : nullptr, *batch.dictionary);
        encoder_dictionary_ = batch.dictionary;
      }
      for (const std::string& bytes : encoder_->Encode(batch)) {
        if (Below(12) == 0) return Reconnect();
        Receive(bytes, batch);
        if (testing::Test::HasFailure()) return;
      }
    }
    if (Below(6) == 0) Reconnect();
  }

  int evictions = 0, continued = 0, kept = 0, decoded = 0;

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  Sample MakeSample() {
    Dictionary& d = *growing_;
    const uint64_t program = Below(5);
    std::string id(20, static_cast<char>('a' + program));
    const ExecutableRef exe = d.InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, id), "/" + id);
    NodeRef node;
    for (uint64_t depth = Below(4); depth > 0; --depth) {
      tributary::Frame frame{FrameKind::kNative, depth > 1, exe, Below(30)};
      if (Below(5) == 0) {
        frame.name = d.InternString("f" + std::to_string(Below(6)));
        frame.position = static_cast<uint32_t>(Below(3));
      }
      node = d.InternNode({node, d.InternFrame(frame)});
    }
    Process process{.key = {Pid{static_cast<int32_t>(Below(9))}, 1, 0},
                    .comm = d.InternString("p" + std::to_string(program))};
    if (Below(3) == 0) process.container_id = d.InternString("c" + std::to_string(Below(4)));
    process.executable = exe;
    now_ += static_cast<int64_t>(Below(1'000'000));
    Sample sample{.time = MonotonicNs{now_}, .node = node, .cpu = static_cast<uint16_t>(Below(3)), .value = Below(2)};
    if (Below(4) == 0) sample.attributes = d.InternString("a=" + std::to_string(Below(3)));
    sample.thread = d.InternThread({d.InternProcess(process), Tid{static_cast<int32_t>(Below(5))},
                                    d.InternString("t" + std::to_string(Below(3)))});
    d.Use(sample.node);
    d.Use(sample.thread);
    return sample;
  }

  // An event refers to strings that no process or thread uses.
  ProcessEvent MakeEvent() {
    now_ += static_cast<int64_t>(Below(1'000'000));
    ProcessEvent event{.time = MonotonicNs{now_}, .pid = Pid{static_cast<int32_t>(Below(5))}};
    event.name = growing_->InternString("e" + std::to_string(Below(4)));
    if (Below(2) == 0) event.container_id = growing_->InternString("ec" + std::to_string(Below(3)));
    return event;
  }

  void Receive(const std::string& bytes, const Batch& batch) {
    FrameDecoder frames;
    frames.Append(bytes);
    Frame frame;
    ASSERT_TRUE(*frames.Next(&frame));
    const GenerationInfo info = *GenerationOf(frame.type, frame.payload);
    if (!decoder_ || (info.generation != decoder_->generation() && info.derived_from == 0)) {
      decoder_.emplace(info.generation);
      dictionary_ = std::make_shared<Dictionary>();
    }
    auto in = decoder_->Decode(frame.type, frame.sequence, frame.payload);
    if (Below(4) == 0) {  // the owner cannot take it just then
      decoder_->Undo();
      EXPECT_EQ(decoder_->have(), dictionary_->counts());
      in = decoder_->Decode(frame.type, frame.sequence, frame.payload);
    }
    ASSERT_TRUE(in.ok()) << in.status();
    ++decoded;
    if (in->derived) dictionary_ = std::make_shared<Dictionary>(dictionary_, in->derived->eviction);
    EXPECT_EQ(in->before, dictionary_->counts());
    ASSERT_TRUE(dictionary_->Append(in->definitions));
    EXPECT_EQ(decoder_->have(), dictionary_->counts());
    EXPECT_EQ(encoder_->sent(), decoder_->have());
    EXPECT_EQ(dictionary_->rolling_hash(), in->nodes_hash);
    ASSERT_EQ(in->samples.size(), batch.samples.size());
    for (size_t i = 0; i < in->samples.size(); ++i) {
      ASSERT_EQ(Describe(*dictionary_, in->samples[i]), Describe(*batch.dictionary, batch.samples[i]));
    }
    ASSERT_EQ(in->events.size(), batch.events.size());
    for (size_t i = 0; i < in->events.size(); ++i) {
      ASSERT_EQ(Describe(*dictionary_, in->events[i]), Describe(*batch.dictionary, batch.events[i]));
    }
  }

  void Reconnect() {
    // Some of the sent batches are durable; the rest is sent again.
    const size_t durable = Below(std::min(next_, held_back_.size()) + 1);
    held_back_.erase(held_back_.begin(), held_back_.begin() + static_cast<ptrdiff_t>(durable));
    next_ = 0;
    if (!decoder_ || !encoder_ || decoder_->generation() != encoder_->generation() || Below(5) == 0) {
      decoder_.reset();
      encoder_.reset();
      return;
    }
    ++kept;
    DictionaryCounts have = decoder_->have();
    if (Below(2) == 0) {
      have.nodes -= static_cast<uint32_t>(Below(have.nodes));
      have.threads -= static_cast<uint32_t>(Below(have.threads));
      ASSERT_TRUE(decoder_->Truncate(have));
      dictionary_ = Prefix(*dictionary_, have);
    }
    encoder_->set_sent(have);
  }

  std::mt19937_64 random_;
  int64_t now_ = 5 * kNsPerSecond;
  uint64_t made_ = 0;
  std::shared_ptr<Dictionary> growing_;
  std::deque<Batch> held_back_;
  size_t next_ = 0;
  uint32_t generation_ = 0;
  std::optional<BatchEncoder> encoder_;
  std::shared_ptr<const Dictionary> encoder_dictionary_;
  std::optional<BatchDecoder> decoder_;
  std::shared_ptr<Dictionary> dictionary_;
};

TEST(EvictionProperty, ReaderFollowsTheWriter) {
  int evictions = 0, continued = 0, kept = 0, decoded = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Ends ends(seed);
    for (int i = 0; i < 150 && !HasFailure(); ++i) {
      ends.MakeBatch();
      ends.Send();
    }
    if (HasFailure()) return;
    evictions += ends.evictions, continued += ends.continued, kept += ends.kept, decoded += ends.decoded;
  }
  EXPECT_GT(evictions, 500);
  EXPECT_GT(continued, 300);
  EXPECT_GT(kept, 300);
  EXPECT_GT(decoded, 5'000);
}

}  // namespace
}  // namespace tributary::intake
