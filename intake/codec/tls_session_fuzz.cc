#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/certificates_testing.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/stream_testing.h"
#include "base/tls.h"
#include "intake/codec/batch_decoder.h"
#include "intake/testing/mend_checksums_testing.h"
#include "intake/testing/message_mutator_testing.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

// A session behind TLS, from the server's side. The first byte says how the bytes after it are used:
//   0  bytes from the network, from the first one on
//   1  what a client sends after a real handshake (frames; their checksums are corrected)
//   2  changes to what that client's TLS sends on the network: pairs of (distance, bits to flip)
// The first byte also gives the size of the pieces in which the bytes arrive. In all cases the server must read what
// the client wrote, from its beginning.

namespace {

using namespace tributary;
using namespace tributary::intake;

struct Contexts {
  Contexts() {
    TestAuthority authority("fuzz");
    TestFiles files;
    const PemPair own = authority.Issue({.common_name = "server", .alternatives = "DNS:server"});
    const std::string cert = files.Write("cert", own.cert), key = files.Write("key", own.key),
                      ca = files.Write("ca", authority.pem());
    server = TlsContext::Load({.side = TlsContext::Side::kServer, .cert_path = cert, .key_path = key, .ca_path = ca},
                              clock, metrics)
                 .value();
    client = TlsContext::Load({.side = TlsContext::Side::kClient, .cert_path = cert, .key_path = key, .ca_path = ca},
                              clock, metrics)
                 .value();
  }
  FakeClock clock;  // does not advance, so the files, which are deleted by then, are not checked again
  Metrics metrics;
  std::unique_ptr<TlsContext> server, client;
};

class ReadyConnector : public Connector {
 public:
  std::unique_ptr<Stream> Connect(const std::string&, uint16_t, std::function<void(absl::Status)> done) override {
    connected = std::move(done);
    return std::move(next);
  }
  std::unique_ptr<Stream> next;
  std::function<void(absl::Status)> connected;
};

// Does what the acceptor and a session do with the bytes that they read.
void Decode(FrameDecoder& frames, BatchDecoder& batches) {
  tributary::intake::Frame frame;
  while (true) {
    auto got = frames.Next(&frame);
    if (!got.ok() || !*got) return;
    if (frame.type == MessageType::kHello) {
      auto hello = DecodeHello(frame.payload);
#ifdef TRIBUTARY_PLANT_CRASH
      // Only a whole frame of a message that decodes, inside an established session, reaches this line.
      if (hello.ok() && hello->version_max > 1000) abort();
#endif
    } else if (frame.type == MessageType::kBatch) {
      (void)batches.Decode(frame.type, frame.sequence, frame.payload);
    }
  }
}

// Changes the bytes that pass through, as a network could.
class Spoiler : public Stream {
 public:
  Spoiler(std::unique_ptr<Stream> below, std::string changes)
      : below_(std::move(below)), changes_(std::move(changes)) {}
  void Start(Callbacks callbacks) override { below_->Start(std::move(callbacks)); }
  void PauseReading() override { below_->PauseReading(); }
  void ResumeReading() override { below_->ResumeReading(); }
  void Write(std::string bytes) override {
    for (; at_ + 1 < changes_.size(); at_ += 2) {
      const size_t distance = static_cast<uint8_t>(changes_[at_]) * size_t{8};
      if (passed_ + distance >= bytes.size()) break;
      passed_ += distance;
      bytes[passed_] = static_cast<char>(bytes[passed_] ^ changes_[at_ + 1]);
    }
    passed_ = 0;
    below_->Write(std::move(bytes));
  }
  size_t pending_bytes() const override { return below_->pending_bytes(); }
  std::string peer() const override { return "spoiled"; }

 private:
  std::unique_ptr<Stream> below_;
  const std::string changes_;
  size_t at_ = 0, passed_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > (256u << 10)) return 0;
  static Contexts& contexts = *new Contexts;
  constexpr size_t kPieces[] = {SIZE_MAX, 1, 7, 1000};
  const int use = data[0] % 3;
  const size_t piece = kPieces[data[0] / 3 % 4];
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (use == 1) MendChecksums(bytes);
  const std::string sent = use == 2 ? std::string(3000, 's') : bytes;

  ManualAlarms alarms;
  auto [client_end, server_end] = MemoryStream::Pair();
  MemoryStream *from_client = server_end.get(), *from_server = client_end.get();
  auto server = TlsStream::Accept(std::move(server_end), *contexts.server, alarms);
  std::string received;
  FrameDecoder frames;
  BatchDecoder batches(1);
  server->Start({.on_data =
                     [&](std::string_view plain) {
                       received.append(plain);
                       frames.Append(plain);
                       Decode(frames, batches);
                       server->Write("answer");
                     },
                 .on_close = [](const absl::Status&) {},
                 .on_drained = {}});
  if (use == 0) {
    client_end->Write(bytes);
    while (from_client->Deliver(piece) || alarms.Advance(0)) {
    }
    if (!received.empty()) abort();  // without a certificate no client gets in
    return 0;
  }
  ReadyConnector below;
  below.next = use == 2 ? std::unique_ptr<Stream>(std::make_unique<Spoiler>(std::move(client_end), bytes))
                        : std::unique_ptr<Stream>(std::move(client_end));
  TlsConnector connector(below, *contexts.client, alarms);
  std::unique_ptr<Stream> client;
  client = connector.Connect("server", 1, [&](const absl::Status& status) {
    if (!status.ok()) return;
    client->Start({.on_data = [](std::string_view) {}, .on_close = {}, .on_drained = {}});
    client->Write(sent);
  });
  below.connected(absl::OkStatus());
  while (from_client->Deliver(piece) || from_server->Deliver(piece) || alarms.Advance(0)) {
  }
  if (received.compare(0, std::string::npos, sent, 0, received.size()) != 0) abort();
  if (use == 1 && received.size() != sent.size()) abort();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max, unsigned seed) {
  MessageMutator mutator(seed);
  if (size == 0 || data[0] % 3 != 1 || mutator.OneIn(16)) return LLVMFuzzerMutate(data, size, size_max);
  std::string changed(reinterpret_cast<const char*>(data) + 1, size - 1);
  // Several changes at once: a handshake takes 10 ms, so there are few runs.
  for (uint64_t i = mutator.Below(8); i < 8; ++i) changed = mutator.Frames(changed, size_max - 1);
  std::memcpy(data + 1, changed.data(), changed.size());
  return 1 + changed.size();
}
