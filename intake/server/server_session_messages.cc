#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "intake/metadata/metadata_message.h"
#include "intake/server/server_session_impl.h"

namespace tributary::intake {

void ServerSession::Impl::Handle(Frame frame) {
  switch (frame.type) {
    case MessageType::kDefinitions:
    case MessageType::kBatch:
      return batches.Take(std::move(frame));
    case MessageType::kSymbolChunk:
      return HandleSymbolChunk(frame);
    case MessageType::kSymbolDigest:
      return HandleSymbolDigest(frame);
    case MessageType::kMetadata:
      return HandleMetadata(std::move(frame));
    case MessageType::kHeartbeat:
      if (!DecodeHeartbeat(frame.payload).ok()) break;
      return Write(MessageType::kHeartbeat, frame.payload);
    case MessageType::kGoodbye: {
      absl::StatusOr<Goodbye> goodbye = DecodeGoodbye(frame.payload);
      if (!goodbye.ok()) break;
      return Finish(Error(absl::StatusCode::kCancelled, "the collector said: " + EscapeForDisplay(goodbye->reason)));
    }
    case MessageType::kHello:
    case MessageType::kWelcome:
    case MessageType::kAck:
    case MessageType::kNeedDictionary:
    case MessageType::kNeedSymbols:
    case MessageType::kNeedDigests:
    case MessageType::kOptOuts:
      break;
    default:
      return metrics.unknown_frames.Add();
  }
  Refuse(Refusal::kBadMessage,
         {.reason = fmt::format("a message of type {} is malformed or unexpected", static_cast<int>(frame.type))});
}

void ServerSession::Impl::HandleSymbolChunk(const Frame& frame) {
  absl::StatusOr<SymbolChunk> chunk = DecodeSymbolChunk(frame.payload);
  if (!chunk.ok()) return Refuse(Refusal::kBadMessage, {.reason = Message(chunk.status())});
  absl::StatusOr<std::optional<SymbolReceiver::Table>> table = symbols.Take(*std::move(chunk));
  if (table.status().code() == absl::StatusCode::kNotFound) return Count(Refusal::kUnaskedSymbols);
  if (!table.ok()) return Refuse(Refusal::kBadMessage, {.reason = Message(table.status())});
  if (!*table) return owner.OnSymbolProgress(hello.session);
  if ((*table)->encoded.status().code() == absl::StatusCode::kResourceExhausted) Count(Refusal::kOversized);
  owner.OnSymbols(hello.session, (*table)->id, std::move((*table)->encoded));
}

void ServerSession::Impl::NeedSymbols(const std::vector<ExecutableId>& ids) {
  std::vector<SymbolRequest> asked;
  auto send = [&] {
    if (!asked.empty()) Write(MessageType::kNeedSymbols, EncodeNeedSymbols(asked));
    asked.clear();
  };
  for (const ExecutableId& id : ids) {
    if (!id.known()) continue;
    std::optional<SymbolRequest> request = symbols.Expect(id);
    if (!request) {
      Count(Refusal::kTooManySymbols);
      continue;
    }
    asked.push_back(*std::move(request));
    if (asked.size() == kNeedSymbolsMax) send();
  }
  send();
}

void ServerSession::Impl::NeedDigests(const std::vector<ExecutableId>& ids) {
  std::vector<ExecutableId> asked;
  auto send = [&] {
    if (!asked.empty()) Write(MessageType::kNeedDigests, EncodeNeedDigests(asked));
    asked.clear();
  };
  for (const ExecutableId& id : ids) {
    if (!id.known()) continue;
    if (expected_digests.size() >= SymbolReceiver::kExpectedMax) {
      Count(Refusal::kTooManySymbols);
      continue;
    }
    expected_digests.insert(id);
    asked.push_back(id);
    if (asked.size() == kNeedSymbolsMax) send();
  }
  send();
}

void ServerSession::Impl::HandleSymbolDigest(const Frame& frame) {
  const absl::StatusOr<SymbolDigestAnswer> answer = DecodeSymbolDigest(frame.payload);
  if (!answer.ok()) return Refuse(Refusal::kBadMessage, {.reason = Message(answer.status())});
  if (expected_digests.erase(answer->id) == 0) return Count(Refusal::kUnaskedSymbols);
  absl::StatusOr<SymbolDigest> digest =
      SymbolDigest{.sha256 = answer->sha256, .source = static_cast<SymbolSource>(answer->source)};
  if (!answer->unavailable.empty()) digest = Error(absl::StatusCode::kNotFound, answer->unavailable);
  owner.OnSymbolDigest(hello.session, answer->id, digest);
}

void ServerSession::Impl::HandleMetadata(Frame frame) {
  uint32_t unknown_values = 0;
  absl::StatusOr<MetadataUpdate> update = DecodeMetadata(frame.payload, &unknown_values);
  if (!update.ok()) return Refuse(Refusal::kBadMessage, {.reason = Message(update.status())});
  if (!owner.OnMetadata(hello.session, *std::move(update))) return Stall(std::move(frame));
  metrics.unknown_values.Add(unknown_values);
}

}  // namespace tributary::intake
