#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/loop.h"
#include "base/stream.h"
#include "intake/codec/batch_encoder.h"
#include "intake/symbols/symbol_sender.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"
#include "test/fleet/hostile_kinds.h"

namespace tributary {

// One connection of a hostile node. It speaks the protocol correctly, but ignores the credit, and sends as much as the
// socket takes. After a refusal it connects again, with a new session. Use it only on the loop's thread.
class HostilePeer {
 public:
  struct Totals {  // of all connections of the node
    uint64_t made = 0, acked = 0, connections = 0, refusals = 0, tables = 0;
    std::string last_refusal;
  };

  // `changed` is called when the totals have changed. All borrowed objects must outlive this object.
  HostilePeer(Loop& loop, Connector& connector, uint16_t port, const HostileKind& kind, Totals& totals,
              std::function<void()> changed);
  void Connect();

 private:
  void OnConnected(const absl::Status& status);
  void OnData(std::string_view bytes);
  void Handle(const intake::Frame& frame);
  void OnAck(uint64_t sequence);
  void OnNeedSymbols(const intake::Frame& frame);
  void ConnectAgain(uint64_t delay_ms);
  void Pump();
  void SendBatch();
  void SendTables();
  void Write(intake::MessageType type, std::string_view payload, uint8_t channel = intake::kChannelSamples);

  Connector& connector_;
  const uint16_t port_;
  const HostileKind& kind_;
  Totals& totals_;
  const std::function<void()> changed_;
  std::unique_ptr<Stream> stream_;
  intake::FrameDecoder decoder_;
  std::optional<intake::BatchEncoder> encoder_;
  std::shared_ptr<const Dictionary> dictionary_;
  intake::SymbolSender symbols_;
  Accounting accounting_;
  bool welcome_ = false;
  uint32_t generation_ = 0;
  uint64_t sent_ = 0, acked_ = 0;  // sequence numbers of this session
  Timer retry_, heartbeat_;
};

}  // namespace tributary
