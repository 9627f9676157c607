#include "test/simulator/wire_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "intake/wire/messages.h"

namespace tributary::sim {
namespace {

constexpr uint8_t kStrangerType = 211;  // a message type of a later release

const char* NameOf(intake::MessageType type) {
  static constexpr const char* kNames[] = {"?",       "Hello",          "Welcome",     "Definitions",  "Batch",
                                           "Ack",     "NeedDictionary", "NeedSymbols", "SymbolChunk",  "Heartbeat",
                                           "Goodbye", "Metadata",       "NeedDigests", "SymbolDigest", "OptOuts"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "?";
}

}  // namespace

void WireWatch::OnFrame(uint64_t connection, bool to_server, const std::string& server, const DurableStore& store,
                        std::string& bytes) {
  using intake::MessageType;
  intake::FrameDecoder decoder;
  decoder.Append(bytes);
  intake::Frame frame;
  absl::StatusOr<bool> got = decoder.Next(&frame);
  if (!got.ok() || !*got || decoder.buffered_bytes() > 0) return world_.Violate("a write is not one frame");
  Seen& seen = connections_[connection];
  world_.Log(fmt::format("{} {} {} seq={} bytes={}", connection, to_server ? "->" : "<-", NameOf(frame.type),
                         frame.sequence, bytes.size()));
  switch (frame.type) {
    case MessageType::kHello:
      return OnHello(seen, std::move(frame), bytes);
    case MessageType::kDefinitions:
      seen.definitions_bytes += bytes.size();
      break;
    case MessageType::kBatch:
      OnBatch(seen, frame.sequence, bytes.size());
      break;
    case MessageType::kWelcome:
      return OnWelcome(seen, store, frame, bytes);
    case MessageType::kAck:
      OnAck(seen, store, *intake::DecodeAck(frame.payload));
      break;
    case MessageType::kGoodbye: {
      const intake::Goodbye goodbye = *intake::DecodeGoodbye(frame.payload);
      world_.Log(fmt::format("{} Goodbye: {}", to_server ? "to " + server : server, goodbye.reason));
      // No frame of this test is malformed, so a reducer that reports a malformed frame is wrong.
      if (!to_server && (goodbye.rejected_sequence != 0 || !goodbye.retry)) {
        world_.Violate(fmt::format("{} refuses what is right: {}", server, goodbye.reason));
      }
      break;
    }
    default:
      break;
  }
  if (seen.welcomed && world_.Chance(10)) AddStranger(bytes);
}

void WireWatch::AddStranger(std::string& bytes) {
  bytes = intake::EncodeFrame(static_cast<intake::MessageType>(kStrangerType), 0, 0, "of a later release") + bytes;
}

void WireWatch::OnHello(Seen& seen, intake::Frame frame, std::string& bytes) {
  intake::Hello hello = *intake::DecodeHello(frame.payload);
  seen.session = hello.session.session_id;
  world_.Log(fmt::format("Hello session={:02x}{:02x}{:02x} next={} generation={}", seen.session[1], seen.session[0],
                         seen.session[15], hello.next_sequence, hello.dictionary_generation));
  if (!world_.Chance(200)) return;
  hello.version_max = 9;
  hello.features = ~0ull;
  bytes = intake::EncodeFrame(frame.type, frame.channel, frame.sequence, intake::EncodeHello(hello));
}

void WireWatch::OnBatch(Seen& seen, uint64_t sequence, size_t bytes) {
  if (sequence <= seen.last_sequence) {  // the client sends everything again after NeedDictionary
    seen.unacked.clear();
    seen.unacked_bytes = 0;
  }
  seen.last_sequence = sequence;
  // Counts only the batches before this one: one batch may always be sent.
  if (seen.unacked_bytes > credit_) {
    world_.Violate(fmt::format("batch {} is sent with {} bytes unacknowledged where the credit is {}", sequence,
                               seen.unacked_bytes, credit_));
  }
  const size_t all = bytes + std::exchange(seen.definitions_bytes, 0);
  if (sequence <= seen.acked) return;  // already acknowledged: the answer was on its way
  seen.unacked[sequence] = all;
  seen.unacked_bytes += all;
}

void WireWatch::OnWelcome(Seen& seen, const DurableStore& store, const intake::Frame& frame, std::string& bytes) {
  intake::Welcome welcome = *intake::DecodeWelcome(frame.payload);
  world_.Log(fmt::format("Welcome durable={} kept={}", welcome.durable_sequence, welcome.dictionary_kept));
  OnAck(seen, store, welcome.durable_sequence);
  seen.welcomed = true;
  welcome.credit_bytes = broken_ == Break::kCreditIgnored ? UINT32_MAX : credit_;
  welcome.features = FeaturesFor(store, welcome.features);
  bytes = intake::EncodeFrame(frame.type, frame.channel, frame.sequence, intake::EncodeWelcome(welcome));
}

uint64_t WireWatch::FeaturesFor(const DurableStore& store, uint64_t features) {
  if (broken_ == Break::kEventsToEarlier) return intake::kFeatureProcessEvents;
  return store.takes_events && world_.Chance(200) ? ~0ull : features;
}

void WireWatch::OnAck(Seen& seen, const DurableStore& store, uint64_t sequence) {
  auto session = store.sessions.find(seen.session);
  const uint64_t durable = session == store.sessions.end() ? 0 : session->second.durable_sequence;
  if (sequence > durable) {
    world_.Violate(fmt::format("batch {} is acknowledged where {} is durable", sequence, durable));
  }
  seen.acked = std::max(seen.acked, sequence);
  while (!seen.unacked.empty() && seen.unacked.begin()->first <= sequence) {
    seen.unacked_bytes -= seen.unacked.begin()->second;
    seen.unacked.erase(seen.unacked.begin());
  }
}

}  // namespace tributary::sim
