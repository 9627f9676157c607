#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tributary {

// The buffers that OpenSSL reads from and writes to.
struct TlsWire {
  // After the handshake, a peer may send messages of TLS itself: requests for new keys, tickets, and requests for
  // another handshake. Each of them has a few bytes, but costs several digests, and often an answer. Honest peers send
  // at most a few of them in the life of a connection. With more, one peer would keep the loop busy for all others.
  static constexpr int kMessagesMax = 16;

  std::string_view arriving;  // borrowed from the stream below during its callback
  std::string kept;           // earlier bytes that were not read, because the reader had paused
  size_t kept_read = 0;
  std::string leaving;
  bool established = false;
  int messages = 0;  // of TLS itself, since the handshake or the last period

  bool is_flooded() const { return established && messages > kMessagesMax; }

  size_t Read(char* to, size_t size);
  // Keeps the unread bytes of `arriving`, before the stream below takes them back.
  void Keep();
};

// Lets OpenSSL read from and write to `wire`, which must outlive `ssl`, and counts messages.
void ConnectWire(SSL* ssl, TlsWire* wire);

}  // namespace tributary
