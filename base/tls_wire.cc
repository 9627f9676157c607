#include "base/tls_wire.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

int ReadWire(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  TlsWire& wire = *static_cast<TlsWire*>(BIO_get_data(bio));
  // One call of SSL_read processes any number of messages, so a flood must end here.
  const size_t got = wire.is_flooded() ? 0 : wire.Read(to, static_cast<size_t>(std::max(size, 0)));
  if (got > 0) return static_cast<int>(got);
  BIO_set_retry_read(bio);
  return -1;
}

int WriteWire(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  if (size > 0) static_cast<TlsWire*>(BIO_get_data(bio))->leaving.append(from, static_cast<size_t>(size));
  return size;
}

BIO* NewWireBio(TlsWire* wire) {
  // OpenSSL keeps the method for the life of the process, like its own methods.
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tributary wire");
    TRIBUTARY_CHECK(made != nullptr);
    BIO_meth_set_read(made, ReadWire);
    BIO_meth_set_write(made, WriteWire);
    BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1L : 0L; });
    return made;
  }();
  BIO* bio = BIO_new(method);
  TRIBUTARY_CHECK(bio != nullptr);
  BIO_set_data(bio, wire);
  BIO_set_init(bio, 1);
  return bio;
}

// OpenSSL calls this for each message that it has received or sent. An alert that we send may be the answer to a
// request for another handshake, which OpenSSL does not report.
void CountMessage(int is_sent, int /*version*/, int type, const void*, size_t, SSL*, void* wire) {
  if (type == SSL3_RT_ALERT || (type == SSL3_RT_HANDSHAKE && is_sent == 0)) ++static_cast<TlsWire*>(wire)->messages;
}

}  // namespace

size_t TlsWire::Read(char* to, size_t size) {
  std::string_view from = kept_read < kept.size() ? std::string_view(kept).substr(kept_read) : arriving;
  size = std::min(size, from.size());
  from.copy(to, size);
  if (kept_read < kept.size()) {
    kept_read += size;
    if (kept_read == kept.size()) {
      kept = std::string();
      kept_read = 0;
    }
  } else {
    arriving.remove_prefix(size);
  }
  return size;
}

void TlsWire::Keep() {
  kept.erase(0, kept_read);
  kept_read = 0;
  kept.append(std::exchange(arriving, {}));
}

void ConnectWire(SSL* ssl, TlsWire* wire) {
  BIO* bio = NewWireBio(wire);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_msg_callback(ssl, CountMessage);
  SSL_set_msg_callback_arg(ssl, wire);
}

}  // namespace tributary
