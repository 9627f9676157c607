#include "test/fleet/open_connections.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

namespace tributary {
namespace {

constexpr uint64_t kSweepMs = 20;
constexpr uint32_t kOpensPerSweep = 64;  // so a connection that is refused at once is not opened all the time

std::string FirstBytes(uint32_t number) {
  intake::Hello hello;
  hello.session.node_id = number % 6 < 3 ? "hostile-connections" : fmt::format("hostile-connections-{}", number);
  hello.session.session_id.fill(2);
  hello.session.session_id[0] = static_cast<uint8_t>(number);
  hello.session.session_id[1] = static_cast<uint8_t>(number >> 8);
  const std::string frame =
      intake::EncodeFrame(intake::MessageType::kHello, intake::kChannelSamples, 0, intake::EncodeHello(hello));
  return number % 3 == 0 ? "" : number % 3 == 1 ? frame.substr(0, frame.size() / 2) : frame;
}

}  // namespace

struct OpenConnections::Connection {
  uint32_t number = 0;
  std::unique_ptr<Stream> stream;
  bool was_open = false;
};

OpenConnections::OpenConnections(Loop& loop, uint16_t port, uint32_t connections, std::function<void()> opened)
    : tcp_(loop), port_(port), opened_(std::move(opened)), sweep_(loop, [this] { Open(); }) {
  for (uint32_t number = 0; number < connections; ++number) {
    connections_.push_back(std::make_unique<Connection>(Connection{.number = number}));
    closed_.push_back(connections_.back().get());
  }
  sweep_.StartEvery(kSweepMs);
}

OpenConnections::~OpenConnections() = default;

// The timer calls this function, so no callback of a stream is active, and streams can be destroyed.
void OpenConnections::Open() {
  for (uint32_t opens = 0; !closed_.empty() && connecting_ < kConnectingMax && opens < kOpensPerSweep; ++opens) {
    Connection& connection = *closed_.back();
    closed_.pop_back();
    ++connecting_;
    connection.stream = tcp_.Connect("127.0.0.1", port_, [this, &connection](const absl::Status& status) {
      --connecting_;
      OnConnected(connection, status.ok());
    });
  }
}

void OpenConnections::OnConnected(Connection& connection, bool ok) {
  if (!ok) {
    closed_.push_back(&connection);
    return;
  }
  connection.stream->Start({.on_data = [](std::string_view) {},
                            .on_close = [this, &connection](const absl::Status&) { closed_.push_back(&connection); },
                            .on_drained = {}});
  if (std::string bytes = FirstBytes(connection.number); !bytes.empty()) connection.stream->Write(std::move(bytes));
  if (std::exchange(connection.was_open, true)) {
    ++reopened_;
  } else if (++first_opened_ == connections_.size()) {
    opened_();
  }
}

}  // namespace tributary
