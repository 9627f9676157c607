#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/stream.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

// For tests: a client that sends any bytes to a reducer.

namespace tributary::intake {

// A connection that sends the given bytes.
class RawClient {
 public:
  RawClient(Connector& connector, uint16_t port, std::string bytes) {
    stream_ = connector.Connect("127.0.0.1", port, [this, bytes = std::move(bytes)](const absl::Status& status) {
      if (!status.ok()) return Closed(status);
      connected_ = true;
      stream_->Start({.on_data = [this](std::string_view data) { received_.append(data); },
                      .on_close = [this](const absl::Status& why) { Closed(why); },
                      .on_drained = {}});
      stream_->Write(bytes);
    });
  }
  void Write(std::string bytes) { stream_->Write(std::move(bytes)); }
  void PauseReading() { stream_->PauseReading(); }
  bool connected() const { return connected_; }
  bool closed() const { return closed_.has_value(); }
  const absl::Status& why() const { return *closed_; }
  std::optional<Frame> Find(MessageType type) const {
    FrameDecoder decoder;
    decoder.Append(received_);
    Frame frame;
    while (true) {
      auto got = decoder.Next(&frame);
      if (!got.ok() || !*got) return std::nullopt;
      if (frame.type == type) return frame;
    }
  }
  bool welcome() const { return Find(MessageType::kWelcome).has_value(); }
  std::optional<Goodbye> goodbye() const {
    std::optional<Frame> frame = Find(MessageType::kGoodbye);
    return frame ? std::optional<Goodbye>(*DecodeGoodbye(frame->payload)) : std::nullopt;
  }

 private:
  void Closed(const absl::Status& status) { closed_ = status; }
  std::unique_ptr<Stream> stream_;
  std::string received_;
  bool connected_ = false;
  std::optional<absl::Status> closed_;
};

inline std::string HelloFrame(const std::string& node_id, const std::string& token = "") {
  Hello hello;
  hello.session.node_id = node_id;
  hello.token = token;
  return EncodeFrame(MessageType::kHello, 0, 0, EncodeHello(hello));
}

}  // namespace tributary::intake
