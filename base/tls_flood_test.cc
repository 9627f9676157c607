#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include <optional>
#include <tuple>

#include "base/certificates_testing.h"
#include "base/status.h"
#include "base/stream_testing.h"
#include "base/tls.h"
#include "base/tls_wire.h"

// A client that has finished its handshake, and then sends only messages of TLS itself.

namespace tributary {
namespace {

using testing::HasSubstr;

class TlsFloodTest : public testing::Test {
 protected:
  TlsFloodTest() {
    const PemPair pair = authority_.Issue({.common_name = "s"});
    TlsContext::Options options{.cert_path = files_.Write("server.pem", pair.cert),
                                .key_path = files_.Write("server.key", pair.key)};
    context_ = TlsContext::Load(options, clock_, metrics_).value();
    std::tie(below_client_, below_server_) = MemoryStream::Pair();
    server_end_ = below_server_.get();
    server_ = TlsStream::Accept(std::move(below_server_), *context_, alarms_);
    server_->Start({.on_data = [this](std::string_view bytes) { data_.append(bytes); },
                    .on_close = [this](absl::Status status) { closed_ = std::move(status); },
                    .on_drained = {}});
    native_.reset(SSL_CTX_new(TLS_client_method()));
    client_.reset(SSL_new(native_.get()));
    SSL_set_bio(client_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    below_client_->Start({.on_data =
                              [this](std::string_view bytes) {
                                answer_bytes_ += bytes.size();
                                BIO_write(SSL_get_rbio(client_.get()), bytes.data(), static_cast<int>(bytes.size()));
                              },
                          .on_close = {},
                          .on_drained = {}});
    while (SSL_connect(client_.get()) != 1) Exchange();
    Exchange();
  }
  void Send() {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(client_.get()), &bytes);
    if (size > 0) below_client_->Write(std::string(bytes, static_cast<size_t>(size)));
    (void)BIO_reset(SSL_get_wbio(client_.get()));
    server_end_->Deliver();
  }
  void Exchange() {
    Send();
    below_client_->Deliver();
  }
  // Adds a request for new keys to the bytes that Send sends. Does not read the server's answers.
  void UpdateKeys() {
    ASSERT_EQ(SSL_key_update(client_.get(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(client_.get()), 1);
  }
  uint64_t Floods() { return metrics_.AddCounter("tributary_tls_floods_total", "").value(); }

  TestAuthority authority_{"authority"};
  TestFiles files_;
  FakeClock clock_;
  Metrics metrics_;
  ManualAlarms alarms_;
  std::unique_ptr<TlsContext> context_;
  std::unique_ptr<MemoryStream> below_client_, below_server_;
  MemoryStream* server_end_ = nullptr;
  std::unique_ptr<TlsStream> server_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> native_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> client_{nullptr, SSL_free};
  std::string data_;
  std::optional<absl::Status> closed_;
  size_t answer_bytes_ = 0;
};

TEST_F(TlsFloodTest, TooManyKeyUpdatesEndTheConnection) {
  const size_t before = answer_bytes_;
  for (int i = 0; i < 1'000; ++i) UpdateKeys();
  Send();  // all of them in one read
  ASSERT_TRUE(closed_);
  EXPECT_EQ(closed_->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(*closed_), HasSubstr("too often"));
  EXPECT_EQ(Floods(), 1u);
  below_client_->Deliver();
  EXPECT_LT(answer_bytes_ - before, 50u * (TlsWire::kMessagesMax + 2)) << "the rest was not processed";
}

TEST_F(TlsFloodTest, AFewKeyUpdatesAreServed) {
  for (int period = 0; period < 5; ++period) {
    for (int i = 0; i < TlsWire::kMessagesMax; ++i) {
      UpdateKeys();
      ASSERT_EQ(SSL_write(client_.get(), "x", 1), 1);
      Exchange();
      char none = 0;
      ASSERT_LE(SSL_read(client_.get(), &none, 1), 0);  // processes the server's answer
    }
    ASSERT_FALSE(closed_) << *closed_;
    alarms_.Advance(TlsStream::kMessagesPeriodMs);
  }
  EXPECT_EQ(data_.size(), 5u * TlsWire::kMessagesMax);
  EXPECT_EQ(Floods(), 0u);
  for (int i = 0; i <= TlsWire::kMessagesMax; ++i) {
    UpdateKeys();
    Send();
  }
  EXPECT_TRUE(closed_) << "also if each arrives alone";
}

}  // namespace
}  // namespace tributary
